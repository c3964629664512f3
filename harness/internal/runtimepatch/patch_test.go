package runtimepatch

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// program prints the order in which goroutines of a bubble run. The goroutines wait for timers of
// the same time, for mutexes whose holders sleep, for channels and for a map.
const program = `package main

import (
	"fmt"
	"os"
	"regexp"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func main() {
	testing.Main(regexp.MatchString, []testing.InternalTest{{Name: "order", F: func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { order(); os.Exit(0) })
	}}}, nil, nil)
}

func order() {
	var mu sync.Mutex
	var rw sync.RWMutex
	var group sync.WaitGroup
	group.Go(func() {
		rw.Lock()
		defer rw.Unlock()
		mu.Lock()
		defer mu.Unlock()
		time.Sleep(2 * time.Second)
	})
	a, b := make(chan int, 100), make(chan int, 100)
	for i := range 100 {
		group.Go(func() {
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			rw.RLock()
			defer rw.RUnlock()
			a <- i
			b <- i
		})
	}
	group.Wait()
	m := map[*int]int{}
	for range 100 {
		var i int
		select {
		case i = <-a:
		case i = <-b:
		}
		m[new(int)] = i
	}
	for _, i := range m {
		fmt.Print(i, " ")
	}
}
`

// TestWrite builds a patched program. Each run with one seed must print the same order, and two
// seeds must print different orders.
func TestWrite(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the packages of the standard library that the program needs")
	}
	dir := t.TempDir()
	overlay := filepath.Join(dir, "overlay.json")
	if err := WriteOverlay(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	source, executable := filepath.Join(dir, "main.go"), filepath.Join(dir, "program")
	if err := os.WriteFile(source, []byte(program), 0o644); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-overlay="+overlay, "-o", executable, source)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run := func(seed uint64) string {
		t.Helper()
		command := exec.CommandContext(t.Context(), executable)
		command.Dir, command.Env = dir, Environment(seed)
		out, err := command.Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	first := run(1)
	for range 20 {
		if again := run(1); again != first {
			t.Fatalf("one seed printed two orders:\n%s\n%s", first, again)
		}
	}
	if run(2) == first {
		t.Errorf("the seeds 1 and 2 printed the same order: %s", first)
	}
}
