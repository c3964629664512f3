package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// helperVariable makes the test binary a small gauntlet: it starts processes in
// the directory that the variable names, says so, and ends as it is told.
const helperVariable = "GAUNTLET_PROCESS_TEST_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(helperVariable); dir != "" {
		helper(dir)
	}
	os.Exit(m.Run())
}

// helper prints the process IDs of a child, a grandchild and the guard, then
// ends as the first line of its input says.
func helper(dir string) {
	state := filepath.Join(dir, "state")
	fail := func(err error) {
		if err != nil {
			fmt.Println("helper:", err)
			os.Exit(1)
		}
	}
	fail(os.Mkdir(state, 0o700))
	_, err := GuardDirectory(state)
	fail(err)
	kept := filepath.Join(dir, "kept")
	fail(os.Mkdir(kept, 0o700))
	release, err := GuardDirectory(kept)
	fail(err)
	release()
	touch := func(name string) []string {
		return []string{"/bin/sh", "-c", `echo "$SAYS" >"$0"`, filepath.Join(dir, name)}
	}
	_, err = GuardCommand(touch("commanded"), []string{"SAYS=bye"})
	fail(err)
	release, err = GuardCommand(touch("released"), nil)
	fail(err)
	release()
	ended, err := Start(context.Background(), Spec{Name: "ended", Path: "/bin/sh", Args: []string{"-c", "exit 0"}, LogPath: filepath.Join(dir, "ended.log")})
	fail(err)
	<-ended.Done()
	// The grandchild ignores what could end it and writes to the state.
	script := `(trap "" TERM INT HUP; while :; do echo x > ` + state + `/file; sleep 0.01; done) & echo $! > ` + dir + `/grandchild; wait`
	child, err := Start(context.Background(), Spec{
		Name: "child", Path: "/bin/sh", Args: []string{"-c", script}, Env: []string{"PATH=/usr/bin:/bin"}, LogPath: filepath.Join(dir, "child.log"),
	})
	fail(err)
	fmt.Println(child.PID())
	switch line, _ := bufio.NewReader(os.Stdin).ReadString('\n'); strings.TrimSpace(line) {
	case "exit":
		os.Exit(0)
	case "panic":
		panic("the helper was told to")
	}
	select {}
}

func TestNothingOutlivesGauntlet(t *testing.T) {
	for _, tc := range []struct {
		name, input string
		signal      syscall.Signal
	}{
		{name: "SIGKILL", signal: syscall.SIGKILL},
		{name: "SIGTERM", signal: syscall.SIGTERM},
		{name: "exit", input: "exit\n"},
		{name: "panic", input: "panic\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			gauntlet := exec.CommandContext(t.Context(), "/proc/self/exe")
			gauntlet.Env = append(os.Environ(), helperVariable+"="+dir)
			input, err := gauntlet.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			output, err := gauntlet.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := gauntlet.Start(); err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(output).ReadString('\n')
			if err != nil {
				t.Fatalf("the helper said %q: %v", line, err)
			}
			child, guard := pidIn(t, line), guardOf(t, gauntlet.Process.Pid)
			state := filepath.Join(dir, "state")
			eventually(t, "the grandchild writes", func() bool { return exists(filepath.Join(state, "file")) })
			data, err := os.ReadFile(filepath.Join(dir, "grandchild"))
			if err != nil {
				t.Fatal(err)
			}
			grandchild := pidIn(t, string(data))

			// What ends gauntlet from a terminal must not end its guard.
			for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
				if err := syscall.Kill(guard, sig); err != nil {
					t.Fatal(err)
				}
			}
			if tc.signal != 0 {
				err = gauntlet.Process.Signal(tc.signal)
			} else {
				_, err = input.Write([]byte(tc.input))
			}
			if err != nil {
				t.Fatal(err)
			}
			_ = gauntlet.Wait() // how it ends is the test's own doing
			eventually(t, "child, grandchild and guard are gone", func() bool { return !lives(child) && !lives(grandchild) && !lives(guard) })
			if exists(state) {
				t.Error("the state directory is still there")
			}
			if !exists(filepath.Join(dir, "kept")) {
				t.Error("a released directory was removed")
			}
			if said, err := os.ReadFile(filepath.Join(dir, "commanded")); err != nil || string(said) != "bye\n" {
				t.Errorf("the command said %q: %v", said, err)
			}
			if exists(filepath.Join(dir, "released")) {
				t.Error("a released command was run")
			}
		})
	}
}

func TestGuardDirectoryRefusesWhatItMustNotRemove(t *testing.T) {
	for _, dir := range []string{"", "relative", "/", "/x/.."} {
		if _, err := GuardDirectory(dir); err == nil {
			t.Errorf("GuardDirectory(%q) was accepted", dir)
		}
	}
}

func TestGuardCommandRefusesWhatItCannotRun(t *testing.T) {
	for _, args := range [][]string{nil, {"true"}, {""}} {
		if _, err := GuardCommand(args, nil); err == nil {
			t.Errorf("GuardCommand(%q) was accepted", args)
		}
	}
}

func TestGroupHolds(t *testing.T) {
	g := group{PID: 100, Session: 7, StartTicks: 5000}
	for _, tc := range []struct {
		name string
		pid  int
		stat procStat
		want bool
	}{
		{"leader", 100, procStat{group: 100, session: 7, startTicks: 5000}, true},
		{"grandchild", 101, procStat{group: 100, session: 7, startTicks: 5001}, true},
		{"other group", 101, procStat{group: 99, session: 7, startTicks: 5001}, false},
		{"recycled leader", 100, procStat{group: 100, session: 7, startTicks: 9000}, false},
		{"other session", 101, procStat{group: 100, session: 8, startTicks: 5001}, false},
		{"older than the leader", 101, procStat{group: 100, session: 7, startTicks: 4999}, false},
	} {
		if got := g.holds(tc.pid, tc.stat); got != tc.want {
			t.Errorf("%s: holds = %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestParseStat(t *testing.T) {
	line := "42 (a (odd) name) S 1 40 39 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 123456 1000 2000"
	got, err := parseStat(line)
	if want := (procStat{state: "S", group: 40, session: 39, startTicks: 123456}); err != nil || got != want {
		t.Errorf("parseStat = %+v, %v; want %+v", got, err, want)
	}
	for _, bad := range []string{"", "42 (name) S 1", strings.Replace(line, "123456", "x", 1)} {
		if _, err := parseStat(bad); err == nil {
			t.Errorf("parseStat(%q) was accepted", bad)
		}
	}
	own, err := readStat(os.Getpid())
	if err != nil || own.group != syscall.Getpgrp() || own.startTicks == 0 {
		t.Errorf("own stat %+v, %v", own, err)
	}
}

// guardOf finds the guard of a gauntlet by its name.
func guardOf(t *testing.T, pid int) int {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err == nil && strings.TrimRight(string(data), "\x00") == fmt.Sprintf("gauntlet-guard-of-%d", pid) {
			return pidIn(t, strings.Split(path, "/")[2])
		}
	}
	t.Fatalf("process %d has no guard", pid)
	return 0
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, os.ErrNotExist)
}
