package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestWatchdog starts this test again, as a process whose goroutine never yields. The virtual clock
// of the process first advances by an hour. The watchdog must end the process, with its stacks.
func TestWatchdog(t *testing.T) {
	const variable = "GAUNTLET_TEST_WATCHDOG"
	if os.Getenv(variable) == "" {
		command := exec.Command(os.Args[0], "-test.run=^TestWatchdog$")
		command.Env = append(os.Environ(), variable+"=1", "GOMAXPROCS=1", "GODEBUG=asyncpreemptoff=1")
		out, err := command.CombinedOutput()
		if text := string(out); err == nil || !strings.Contains(text, "SIGQUIT: quit") || !strings.Contains(text, "spin") || !strings.Contains(text, "the hour is over") {
			t.Errorf("error %v; want the exit by SIGQUIT after an hour, and the stack of the function spin:\n%s", err, text)
		}
		return
	}
	dog, err := newWatchdog()
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		go dog.run(500 * time.Millisecond)
		<-time.After(time.Hour)
		os.Stderr.WriteString("the hour is over\n")
		spin()
	})
}

//go:noinline
func spin() {
	for i := 0; ; i++ {
		_ = i
	}
}
