package process

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// guardVariable set in the environment makes any program that contains this
// package a guard. The value is the guarded process's ID.
const guardVariable = "GAUNTLET_GUARD_OF"

// guardReady is what a guard says once it no longer heeds signals.
const guardReady = "ready"

func init() {
	if of := os.Getenv(guardVariable); of != "" {
		keepGuard(os.Stdin, os.Stdout)
		os.Exit(0)
	}
}

// notice is one line from gauntlet to its guard.
type notice struct {
	Watch     *group `json:"watch,omitempty"`
	Forget    int    `json:"forget,omitempty"` // a group's number
	Directory string `json:"directory,omitempty"`
	Keep      bool   `json:"keep,omitempty"` // of Directory: no longer to be removed
	// Command is to be run; with nothing in it, the one of that number is not.
	Command *command `json:"command,omitempty"`
}

// command removes what neither a process nor a directory is.
type command struct {
	Number int64    `json:"number"`
	Args   []string `json:"args,omitempty"`
	Env    []string `json:"env,omitempty"`
}

// group is a process group. Its leader's start time (in clock ticks since boot)
// and the session tell it from a later group with the same number.
type group struct {
	PID        int    `json:"pid"`
	Session    int    `json:"session"`
	StartTicks uint64 `json:"startTicks"`
}

// guardPipe is gauntlet's end of the pipe to its guard.
type guardPipe struct {
	mu   sync.Mutex
	pipe io.Writer
}

// theGuard starts the guard when first called: one per gauntlet.
var theGuard = sync.OnceValues(startGuard)

// startGuard runs this very program again as a guard. The guard's input is a
// pipe whose other end only gauntlet has: it reads to the end when, and only
// when, gauntlet is gone.
func startGuard() (*guardPipe, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("starting the guard: %w", err)
	}
	defer read.Close()
	guard, err := runGuard(read)
	if err != nil {
		write.Close()
		return nil, fmt.Errorf("starting the guard: %w", err)
	}
	go func() { _ = guard.Wait() }() // it ends after gauntlet, or was killed
	return &guardPipe{pipe: write}, nil
}

// runGuard starts the guard and returns once it is proof against signals.
func runGuard(input *os.File) (*exec.Cmd, error) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{fmt.Sprintf("gauntlet-guard-of-%d", os.Getpid())}
	cmd.Env = []string{fmt.Sprintf("%s=%d", guardVariable, os.Getpid())}
	cmd.Dir = "/" // a guard must not keep a file system busy
	cmd.Stdin = input
	// Not gauntlet's own output: a guard that held it would keep whoever reads
	// it waiting.
	ready, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	if word, err := io.ReadAll(ready); err != nil || string(word) != guardReady {
		_ = cmd.Process.Kill()
		return nil, fmt.Errorf("it said %q instead of %q: %w", word, guardReady, errors.Join(err, cmd.Wait()))
	}
	return cmd, nil
}

func (g *guardPipe) tell(n notice) error {
	line, err := json.Marshal(n)
	if err != nil {
		return fmt.Errorf("telling the guard: %w", err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, err := g.pipe.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("the guard that cleans up after gauntlet is gone: %w", err)
	}
	return nil
}

// watchGroup has the group killed when gauntlet dies. The leader is a child not
// waited for yet.
func (g *guardPipe) watchGroup(pid int) error {
	stat, err := readStat(pid)
	if err != nil {
		return fmt.Errorf("finding out when process %d started: %w", pid, err)
	}
	return g.tell(notice{Watch: &group{PID: pid, Session: stat.session, StartTicks: stat.startTicks}})
}

// forgetGroup is told before the pid is freed. Without a guard there is nothing
// to forget.
func (g *guardPipe) forgetGroup(pid int) { _ = g.tell(notice{Forget: pid}) }

// GuardDirectory has a directory removed, with all it holds, should gauntlet
// die before it calls release. The path is absolute and the directory one that
// gauntlet made for itself.
func GuardDirectory(dir string) (release func(), err error) {
	if !filepath.IsAbs(dir) || filepath.Clean(dir) == "/" {
		return nil, fmt.Errorf("guarding the directory %q: not an absolute path below /", dir)
	}
	guard, err := theGuard()
	if err != nil {
		return nil, err
	}
	if err := guard.tell(notice{Directory: dir}); err != nil {
		return nil, err
	}
	return func() { _ = guard.tell(notice{Directory: dir, Keep: true}) }, nil
}

// commandDurationMax bounds each command that a guard runs.
const commandDurationMax = time.Minute

// commandNumber tells the commands of this process apart.
var commandNumber atomic.Int64

// GuardCommand has a command run, should gauntlet die before it calls release:
// it is to remove what is neither a process nor a directory, and may take a
// minute. The first argument is an absolute path; env is its whole environment.
func GuardCommand(args, env []string) (release func(), err error) {
	if len(args) == 0 || !filepath.IsAbs(args[0]) {
		return nil, fmt.Errorf("guarding with the command %q: not an absolute path", args)
	}
	guard, err := theGuard()
	if err != nil {
		return nil, err
	}
	number := commandNumber.Add(1)
	if err := guard.tell(notice{Command: &command{Number: number, Args: args, Env: env}}); err != nil {
		return nil, err
	}
	return func() { _ = guard.tell(notice{Command: &command{Number: number}}) }, nil
}

// keepGuard is the life of a guard: note what gauntlet tells until gauntlet is
// gone, then clean up. It ignores what a terminal or an operator sends to end
// gauntlet.
func keepGuard(pipe io.Reader, ready io.WriteCloser) {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	// Without a reader gauntlet is gone already, which the pipe will tell.
	_, _ = io.WriteString(ready, guardReady)
	_ = ready.Close()
	groups := map[int]group{}
	directories := map[string]bool{}
	commands := map[int64]command{}
	lines := bufio.NewScanner(pipe)
	lines.Buffer(nil, noticeBytesMax)
	for lines.Scan() {
		var n notice
		if json.Unmarshal(lines.Bytes(), &n) != nil {
			continue // the last line, cut off by gauntlet's death
		}
		switch {
		case n.Watch != nil:
			groups[n.Watch.PID] = *n.Watch
		case n.Forget != 0:
			delete(groups, n.Forget)
		case n.Command != nil && len(n.Command.Args) == 0:
			delete(commands, n.Command.Number)
		case n.Command != nil:
			commands[n.Command.Number] = *n.Command
		case n.Keep:
			delete(directories, n.Directory)
		case n.Directory != "":
			directories[n.Directory] = true
		}
	}
	cleanUp(groups, commands, directories)
}

// noticeBytesMax is ample for an environment, the largest thing in a notice.
const noticeBytesMax = 8 << 20

// cleanUp kills until no process of the groups is left, for a process may be
// about to fork, then runs the commands, and then removes the directories, which
// all of them wrote to.
func cleanUp(groups map[int]group, commands map[int64]command, directories map[string]bool) {
	const (
		attemptsMax = 1000
		pause       = 10 * time.Millisecond
	)
	for range attemptsMax {
		if killGroups(groups) == 0 {
			break
		}
		time.Sleep(pause)
	}
	var running sync.WaitGroup
	for _, c := range commands {
		running.Go(c.run)
	}
	running.Wait()
	for dir := range directories {
		_ = os.RemoveAll(dir) // there is nobody left to tell
	}
}

// run runs the command to its end or its bound. There is nobody left to tell how
// it went.
func (c command) run() {
	cmd := exec.Command(c.Args[0], c.Args[1:]...)
	cmd.Env = append([]string{}, c.Env...)
	cmd.Dir = "/"
	if cmd.Start() != nil {
		return
	}
	timer := time.AfterFunc(commandDurationMax, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	_ = cmd.Wait()
}

// killGroups kills every live process of the groups and returns how many there
// were.
func killGroups(groups map[int]group) int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}
	killed := 0
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		stat, err := readStat(pid)
		if err != nil || stat.dead() {
			continue
		}
		if g, ok := groups[stat.group]; ok && g.holds(pid, stat) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			killed++
		}
	}
	return killed
}

// holds reports whether the process belongs to the group and not to a later one
// that was given the same number. The number cannot be given again while a
// process of the group lives, so one that started before the leader, is in
// another session, or has the leader's number without its start time is foreign.
func (g group) holds(pid int, stat procStat) bool {
	if stat.group != g.PID || stat.session != g.Session {
		return false
	}
	if pid == g.PID {
		return stat.startTicks == g.StartTicks
	}
	return stat.startTicks >= g.StartTicks
}

// procStat is what the guard needs of /proc/<pid>/stat; see proc(5).
type procStat struct {
	state          string
	group, session int
	startTicks     uint64
}

func (s procStat) dead() bool { return s.state == "Z" || s.state == "X" }

func readStat(pid int) (procStat, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return procStat{}, err
	}
	return parseStat(string(data))
}

// parseStat reads the fields after the command's name, which is in parentheses
// and may itself hold spaces and parentheses.
func parseStat(line string) (procStat, error) {
	end := strings.LastIndexByte(line, ')')
	fields := strings.Fields(line[end+1:])
	if end < 0 || len(fields) < 20 {
		return procStat{}, fmt.Errorf("not a line of /proc/<pid>/stat: %q", line)
	}
	s := procStat{state: fields[0]}
	for i, target := range map[int]any{2: &s.group, 3: &s.session, 19: &s.startTicks} {
		if _, err := fmt.Sscan(fields[i], target); err != nil {
			return procStat{}, fmt.Errorf("field %d of %q: %w", i+3, line, err)
		}
	}
	return s, nil
}
