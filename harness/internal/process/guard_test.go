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

// helperVariable is the name of an environment variable. If it is set, the test binary runs the
// function helper instead of the tests. The value is the directory for the helper's files.
const helperVariable = "GAUNTLET_PROCESS_TEST_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(helperVariable); dir != "" {
		helper(dir)
	}
	os.Exit(m.Run())
}

// helper acts like gauntlet in a run: it starts a child, and registers directories and commands
// with a guard. A guard is a second process that cleans up. It prints the PID of the child. The
// first line of its standard input says how helper exits: "exit" or "panic".
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
	released := filepath.Join(dir, "released-directory")
	fail(os.Mkdir(released, 0o700))
	release, err := GuardDirectory(released)
	fail(err)
	release()
	writeFile := func(name string) []string {
		return []string{"/bin/sh", "-c", `echo "$TEXT" >"$0"`, filepath.Join(dir, name)}
	}
	_, err = GuardCommand(writeFile("guarded-command"), []string{"TEXT=bye"})
	fail(err)
	release, err = GuardCommand(writeFile("released-command"), nil)
	fail(err)
	release()
	exited, err := Start(context.Background(), Spec{Name: "exited", Path: "/bin/sh", Args: []string{"-c", "exit 0"}, LogPath: filepath.Join(dir, "exited.log")})
	fail(err)
	<-exited.Done()
	// The grandchild ignores SIGTERM, SIGINT and SIGHUP, and writes to the guarded directory.
	script := `(trap "" TERM INT HUP; while :; do echo x > ` + state + `/file; sleep 0.01; done) & echo $! > ` + dir + `/grandchild; wait`
	child, err := Start(context.Background(), Spec{
		Name: "child", Path: "/bin/sh", Args: []string{"-c", script}, Env: []string{"PATH=/usr/bin:/bin"}, LogPath: filepath.Join(dir, "child.log"),
	})
	fail(err)
	other := exec.Command("/bin/sh", "-c", "sleep 1000")
	other.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	fail(other.Start())
	_, err = GuardGroup(other.Process.Pid)
	fail(err)
	fail(os.WriteFile(filepath.Join(dir, "other"), fmt.Appendln(nil, other.Process.Pid), 0o600))
	fmt.Println(child.PID())
	switch line, _ := bufio.NewReader(os.Stdin).ReadString('\n'); strings.TrimSpace(line) {
	case "exit":
		os.Exit(0)
	case "panic":
		panic("requested by the test")
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
				t.Fatalf("reading the PID that the helper prints: got %q, error %v", line, err)
			}
			child, guard := pidIn(t, line), guardOf(t, gauntlet.Process.Pid)
			state := filepath.Join(dir, "state")
			eventually(t, "the grandchild writes", func() bool { return exists(filepath.Join(state, "file")) })
			var data []byte
			eventually(t, "the child writes the PID of the grandchild", func() bool {
				data, err = os.ReadFile(filepath.Join(dir, "grandchild"))
				return err == nil && strings.HasSuffix(string(data), "\n")
			})
			grandchild := pidIn(t, string(data))
			if data, err = os.ReadFile(filepath.Join(dir, "other")); err != nil {
				t.Fatal(err)
			}
			other := pidIn(t, string(data))

			// The guard must ignore the signals that stop gauntlet.
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
			_ = gauntlet.Wait() // ignore the error: the test itself caused the exit status
			eventually(t, "all processes have exited", func() bool {
				return !running(child) && !running(grandchild) && !running(other) && !running(guard)
			})
			if exists(state) {
				t.Error("the guard did not remove the guarded directory")
			}
			if !exists(filepath.Join(dir, "released-directory")) {
				t.Error("the guard removed a released directory")
			}
			if text, err := os.ReadFile(filepath.Join(dir, "guarded-command")); err != nil || string(text) != "bye\n" {
				t.Errorf("the guarded command wrote %q (error %v), want %q", text, err, "bye\n")
			}
			if exists(filepath.Join(dir, "released-command")) {
				t.Error("the guard ran a released command")
			}
		})
	}
}

func TestGuardDirectoryRejectsUnsafePaths(t *testing.T) {
	for _, dir := range []string{"", "relative", "/", "/x/.."} {
		if _, err := GuardDirectory(dir); err == nil {
			t.Errorf("GuardDirectory(%q) returned no error", dir)
		}
	}
}

func TestGuardCommandRequiresAbsolutePath(t *testing.T) {
	for _, args := range [][]string{nil, {"true"}, {""}} {
		if _, err := GuardCommand(args, nil); err == nil {
			t.Errorf("GuardCommand(%q) returned no error", args)
		}
	}
}

func TestProcessGroupContains(t *testing.T) {
	g := processGroup{PID: 100, Session: 7, StartTicks: 5000}
	for _, tc := range []struct {
		name string
		pid  int
		stat procStat
		want bool
	}{
		{"leader", 100, procStat{group: 100, session: 7, startTicks: 5000}, true},
		{"grandchild", 101, procStat{group: 100, session: 7, startTicks: 5001}, true},
		{"other group", 101, procStat{group: 99, session: 7, startTicks: 5001}, false},
		{"later process with the leader's PID", 100, procStat{group: 100, session: 7, startTicks: 9000}, false},
		{"other session", 101, procStat{group: 100, session: 8, startTicks: 5001}, false},
		{"started before the leader", 101, procStat{group: 100, session: 7, startTicks: 4999}, false},
	} {
		if got := g.contains(tc.pid, tc.stat); got != tc.want {
			t.Errorf("%s: contains() = %v, want %v", tc.name, got, tc.want)
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
			t.Errorf("parseStat(%q) returned no error", bad)
		}
	}
	own, err := readStat(os.Getpid())
	if err != nil || own.group != syscall.Getpgrp() || own.startTicks == 0 {
		t.Errorf("stat of this process: %+v, error %v; want its process group and a start time", own, err)
	}
}

// guardOf returns the PID of the guard that the process pid has started. It searches /proc for
// the guard's command line.
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
