package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/internal/logfile"
)

func TestErrDescribesExit(t *testing.T) {
	for _, tc := range []struct {
		name, script string
		code         int
		signal       syscall.Signal
		want         []string
	}{
		{"status", "echo first; echo the reason >&2; exit 3", 3, 0, []string{"part exited with status 3", "\tfirst\n\tthe reason"}},
		{"status 0", "echo bye", 0, 0, []string{"part exited with status 0", "bye"}},
		{"signal", "kill -USR1 $$", -1, syscall.SIGUSR1, []string{"part was terminated by SIGUSR1", "wrote nothing to"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := start(t, tc.script)
			<-p.Done()
			var exit *ExitError
			if err := p.Err(); !errors.As(err, &exit) {
				t.Fatalf("Err() = %v, want an ExitError", err)
			}
			if exit.Code != tc.code || exit.Signal != tc.signal {
				t.Errorf("code %d, signal %v; want %d, %v", exit.Code, exit.Signal, tc.code, tc.signal)
			}
			for _, want := range append(tc.want, exit.LogPath) {
				if !strings.Contains(exit.Error(), want) {
					t.Errorf("error %q does not contain %q", exit, want)
				}
			}
		})
	}
}

// testProcessBytes is the memory that TestUsage allocates in the test process.
const testProcessBytes = 128 << 20

// TestUsage checks that Usage measures only the started process, not the test process before
// exec. The test process uses much memory, and the started shell uses little.
func TestUsage(t *testing.T) {
	const shellBytesMax = 32 << 20
	large := bytes.Repeat([]byte{1}, testProcessBytes)
	p := start(t, "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo counted; exec sleep 1000")
	for !strings.Contains(p.LogTail(), "counted") {
		runtime.Gosched()
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	runtime.KeepAlive(large)
	if used := p.Usage(); used.CPU <= 0 || used.RSSBytesMax <= 0 || used.RSSBytesMax > shellBytesMax {
		t.Errorf("usage: %s CPU time, %d bytes; want both above 0, and at most %d bytes", used.CPU, used.RSSBytesMax, shellBytesMax)
	}
}

// TestChattyProcess checks the log of a process that writes more than the size limit. The log
// must have the beginning and the end of the output, and gauntlet must use little memory.
func TestChattyProcess(t *testing.T) {
	const memoryMax = 16 << 20
	p := start(t, "echo first; yes | head -c 80000000; echo last; exec sleep 1000")
	for !strings.Contains(p.LogTail(), "last") {
		runtime.Gosched()
	}
	runtime.GC() // free the memory of other tests
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	if memory.HeapInuse > memoryMax {
		t.Errorf("the heap has %d bytes, want at most %d", memory.HeapInuse, memoryMax)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(p.spec.LogPath)
	if err != nil {
		t.Fatal(err)
	}
	if len(content) > logfile.BytesMax || !bytes.HasPrefix(content, []byte("first\ny\n")) || !bytes.HasSuffix(content, []byte("y\nlast\n")) {
		t.Errorf("the log has %d bytes, begins with %q and ends with %q; want at most %d bytes from \"first\" to \"last\"",
			len(content), content[:10], content[len(content)-10:], logfile.BytesMax)
	}
	if !bytes.Contains(content, []byte("\n[gauntlet dropped ")) {
		t.Error("the log does not say that bytes were dropped")
	}
}

// TestDescendantKeepsOutputOpen checks that Done is closed after the process has exited. It must
// be closed although a descendant in another session still has the standard output open.
func TestDescendantKeepsOutputOpen(t *testing.T) {
	p := start(t, "setsid sleep 20 & echo the end")
	select {
	case <-p.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("the process has exited, but Done is not closed after 10 s")
	}
	if !strings.Contains(p.Err().Error(), "the end") {
		t.Errorf("error %q, want one with the last line of the log", p.Err())
	}
}

func TestErrIsNilWhileProcessRuns(t *testing.T) {
	p := start(t, "exec sleep 1000")
	if err := p.Err(); err != nil {
		t.Errorf("Err() of a running process = %v, want nil", err)
	}
	if p.Usage() != (Usage{}) {
		t.Errorf("Usage() of a running process = %+v, want zero", p.Usage())
	}
}

func TestExitErrorMentionsFullDisk(t *testing.T) {
	err := &ExitError{Name: "etcd", Code: 2, LogPath: "/run/logs/etcd.log", DiskFull: true}
	if want := "etcd exited with status 2; no space left on the disk of /run/logs; it wrote nothing to /run/logs/etcd.log"; err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
	err.LogTail = "etcd: many lines"
	if want := "etcd exited with status 2; no space left on the disk of /run/logs; see /run/logs/etcd.log"; err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
}

func TestStartErrors(t *testing.T) {
	dir := t.TempDir()
	for _, tc := range []struct {
		name string
		spec Spec
		want string
	}{
		{"no such program", Spec{Name: "part", Path: filepath.Join(dir, "absent"), LogPath: filepath.Join(dir, "log")}, "starting part: fork/exec " + dir + "/absent: no such file"},
		{"no working directory", Spec{Name: "part", Path: "/bin/true", Dir: filepath.Join(dir, "removed"), LogPath: filepath.Join(dir, "log")}, "starting part: its working directory was removed: stat " + dir + "/removed: no such file"},
		{"log directory cannot be created", Spec{Name: "part", Path: "/bin/true", LogPath: "/dev/null/log"}, "starting part: opening its log file"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := Start(t.Context(), tc.spec); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Start(): error %v, want one that contains %q", err, tc.want)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Start(ctx, Spec{Name: "part", Path: "/bin/true"}); !errors.Is(err, context.Canceled) {
		t.Errorf("Start() with a canceled context: error %v, want %v", err, context.Canceled)
	}
}

// TestStartReason checks what an error says whose cause is not the executable.
func TestStartReason(t *testing.T) {
	err := Spec{}.startReason(&os.PathError{Op: "fork/exec", Path: "/bin/true", Err: syscall.EMFILE})
	if want := "gauntlet has too many open files; raise the limit with `ulimit -n`"; err.Error() != want {
		t.Errorf("error %q; want %q", err, want)
	}
}

func TestEnvironmentIsNotInherited(t *testing.T) {
	t.Setenv("GAUNTLET_TEST_SECRET", "leaked")
	p := start(t, `echo "[$GAUNTLET_TEST_SECRET]"`)
	<-p.Done()
	if got := p.LogTail(); got != "[]" {
		t.Errorf("the process printed %q, want %q: it inherited a variable", got, "[]")
	}
}

func TestLogTailOmitsEarlierProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "part.log")
	first := startAt(t, path, "echo of the first")
	<-first.Done()
	second := startAt(t, path, "echo of the second")
	<-second.Done()
	if got := second.LogTail(); got != "of the second" {
		t.Errorf("LogTail() = %q, want only the line of the second process", got)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "of the first\nof the second\n" {
		t.Errorf("log file %q (error %v), want the lines of both processes", data, err)
	}
}

func TestLastLinesIsBounded(t *testing.T) {
	var long strings.Builder
	for i := range 100 {
		fmt.Fprintf(&long, "%d %s\n\n", i, strings.Repeat("x", 10*i))
	}
	lines := strings.Split(lastLines([]byte(long.String())), "\n")
	if len(lines) != tailLinesMax || !strings.HasPrefix(lines[0], "85 ") {
		t.Errorf("lastLines returned %d lines that start with %q, want %d lines that start with \"85 \"", len(lines), lines[0][:10], tailLinesMax)
	}
	for _, line := range lines {
		if len(line) > lineBytesMax+len("…") {
			t.Errorf("line of %d bytes, want at most %d and an ellipsis", len(line), lineBytesMax)
		}
	}
}

func TestLastLinesBeginWithTheReasonOfAStack(t *testing.T) {
	stack := strings.Repeat("goroutine 7 [select]:\n\tmain.go:7\n", 20)
	for _, tc := range []struct{ name, data, first string }{
		{"panic", "I1130 begin\npanic: nil map\n" + stack, "panic: nil map"},
		{"fatal error of Go", "I1130 begin\nfatal error: all goroutines are asleep\n" + stack, "fatal error: all goroutines are asleep"},
		{"fatal line of klog", "I1130 begin\nF1130 12:00:00.1 7 main.go:7] no lease\n" + stack, "F1130 12:00:00.1 7 main.go:7] no lease"},
		{"two panics", "panic: first\n" + stack + "panic: second\n" + stack, "panic: second"},
		{"a short stack", "I1130 begin\npanic: nil map\ngoroutine 7 [select]:\n", "I1130 begin"},
	} {
		lines := strings.Split(lastLines([]byte(tc.data)), "\n")
		if lines[0] != tc.first || len(lines) > tailLinesMax {
			t.Errorf("%s: lastLines returned %d lines that start with %q, want %q", tc.name, len(lines), lines[0], tc.first)
		}
	}
}

// isStopped reports whether a process is stopped, as after SIGSTOP.
func isStopped(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return err == nil && strings.Contains(string(status), "\nState:\tT")
}

func TestStop(t *testing.T) {
	for _, tc := range []struct {
		name, script string
		grace        time.Duration
		signal       syscall.Signal
		code         int
	}{
		{"exits on SIGTERM", "trap 'exit 0' TERM; echo ready; sleep 1000 & wait", time.Minute, 0, 0},
		{"ignores SIGTERM", "trap '' TERM; echo ready; sleep 1000; sleep 1000", 10 * time.Millisecond, syscall.SIGKILL, -1},
		{"is paused", "echo ready; kill -STOP $$", 10 * time.Millisecond, syscall.SIGKILL, -1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := start(t, tc.script)
			eventually(t, "the process is ready", func() bool { return p.LogTail() == "ready" })
			if tc.name == "is paused" {
				eventually(t, "the process is paused", func() bool { return isStopped(p.PID()) })
			}
			if err := p.Stop(t.Context(), tc.grace); err != nil {
				t.Fatal(err)
			}
			var exit *ExitError
			if !errors.As(p.Err(), &exit) || exit.Signal != tc.signal || exit.Code != tc.code {
				t.Errorf("Err() = %v, want signal %v, code %d", p.Err(), tc.signal, tc.code)
			}
			if err := p.Stop(t.Context(), tc.grace); err != nil {
				t.Errorf("second Stop(): %v, want no error", err)
			}
			if err := p.Signal(syscall.SIGTERM); !errors.Is(err, ErrEnded) {
				t.Errorf("Signal() after the process has exited: error %v, want %v", err, ErrEnded)
			}
		})
	}
}

func TestStopKillsImmediatelyIfContextIsCanceled(t *testing.T) {
	p := start(t, "trap '' TERM; echo ready; sleep 1000; sleep 1000")
	eventually(t, "the process is ready", func() bool { return p.LogTail() == "ready" })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	started := time.Now()
	if err := p.Stop(ctx, time.Hour); err != nil || time.Since(started) > time.Minute {
		t.Errorf("Stop() took %s, error %v; want no error within a minute", time.Since(started), err)
	}
}

func TestGroupIsKilledWhenItsLeaderExits(t *testing.T) {
	for _, tc := range []struct{ name, end string }{
		{"leader exits", "exit 1"}, {"leader is killed", "kill -KILL $$"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := start(t, "sleep 1000 & echo $!; "+tc.end)
			<-p.Done()
			grandchild := pidIn(t, p.LogTail())
			eventually(t, "the grandchild has exited", func() bool { return !running(grandchild) })
		})
	}
}

func TestStopAndContinueSignalsReachGroup(t *testing.T) {
	p := start(t, "sleep 1000 & echo $!; wait")
	eventually(t, "the process is ready", func() bool { return p.LogTail() != "" })
	grandchild := pidIn(t, p.LogTail())
	inState := func(pid int, states string) func() bool {
		return func() bool {
			stat, err := readStat(pid)
			return err == nil && strings.Contains(states, stat.state)
		}
	}
	for _, step := range []struct {
		signal syscall.Signal
		states string
	}{{syscall.SIGSTOP, "T"}, {syscall.SIGCONT, "SRD"}} {
		if err := p.Signal(step.signal); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the leader is in state "+step.states+" after signal "+step.signal.String(), inState(p.PID(), step.states))
		eventually(t, "the grandchild is in state "+step.states+" after signal "+step.signal.String(), inState(grandchild, step.states))
	}
}

// TestProcessSurvivesThreadThatCalledStart checks that a process continues after the thread that
// called Start has exited. The kernel sends the parent-death signal when the forking thread
// exits. To end its thread, the test returns from a goroutine that is locked to this thread.
func TestProcessSurvivesThreadThatCalledStart(t *testing.T) {
	started := make(chan *Process)
	thread := make(chan int, 1)
	var startAndReturn func()
	startAndReturn = func() {
		runtime.LockOSThread()
		if syscall.Gettid() == os.Getpid() {
			// The main thread of a program never exits. Block it here, so that the next goroutine
			// runs on another thread.
			go startAndReturn()
			<-t.Context().Done()
			return
		}
		thread <- syscall.Gettid()
		started <- start(t, "exec sleep 1000")
	}
	go startAndReturn()
	p, tid := <-started, <-thread
	eventually(t, "the thread has exited", func() bool {
		_, err := os.Stat(fmt.Sprintf("/proc/self/task/%d", tid))
		return errors.Is(err, os.ErrNotExist)
	})
	select {
	case <-p.Done():
		t.Errorf("the process was killed when the thread exited: %v", p.Err())
	default:
	}
}

// start starts a shell script as a Process, and kills the process when the test ends.
func start(t *testing.T, script string) *Process {
	t.Helper()
	return startAt(t, filepath.Join(t.TempDir(), "logs", "part.log"), script)
}

// startAt starts a shell script like start does, with the log file logPath.
func startAt(t *testing.T, logPath, script string) *Process {
	t.Helper()
	p, err := Start(t.Context(), Spec{
		Name: "part", Path: "/bin/sh", Args: []string{"-c", script}, Env: []string{"PATH=/usr/bin:/bin"}, LogPath: logPath,
	})
	if err != nil {
		t.Error(err)
		runtime.Goexit()
	}
	t.Cleanup(func() {
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func pidIn(t *testing.T, line string) int {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatalf("expected a PID, found %q", line)
	}
	return pid
}

// running reports whether a process with this ID exists and is not a zombie.
func running(pid int) bool {
	stat, err := readStat(pid)
	return err == nil && !stat.dead()
}

// eventually fails the test if the condition does not become true within 30 seconds.
func eventually(t *testing.T, description string, condition func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); <-tick.C {
		if condition() {
			return
		}
	}
	t.Fatalf("condition was not met within 30 s: %s", description)
}
