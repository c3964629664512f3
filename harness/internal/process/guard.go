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

// guardVariable is the environment variable that makes a program with this package run as a guard.
// Its value is the process ID of the gauntlet process that started the guard.
const guardVariable = "GAUNTLET_GUARD_OF"

// guardReady is the text that a guard prints as soon as it ignores signals. The parent
// waits for this text.
const guardReady = "ready"

func init() {
	if os.Getenv(guardVariable) != "" {
		runAsGuard(os.Stdin, os.Stdout)
		os.Exit(0)
	}
}

// guardMessage is one line of JSON that gauntlet sends to its guard. Exactly one
// of Watch, Unwatch, Directory and Command is set.
type guardMessage struct {
	Watch     *processGroup `json:"watch,omitempty"`
	Unwatch   int           `json:"forget,omitempty"` // ID of a process group
	Directory string        `json:"directory,omitempty"`
	// Release means that the guard no longer removes Directory.
	Release bool `json:"keep,omitempty"`
	// Command is a cleanup command. If it has no arguments, the guard no longer runs
	// the command with its number.
	Command *cleanupCommand `json:"command,omitempty"`
}

// cleanupCommand removes something that is neither a process nor a directory.
type cleanupCommand struct {
	Number int64    `json:"number"`
	Args   []string `json:"args,omitempty"`
	Env    []string `json:"env,omitempty"`
}

// processGroup identifies a process group.
// The session and the start time of the group leader (in clock ticks since boot)
// distinguish it from a later group with the same ID.
type processGroup struct {
	PID        int    `json:"pid"`
	Session    int    `json:"session"`
	StartTicks uint64 `json:"startTicks"`
}

// guardClient sends messages to the guard through a pipe.
type guardClient struct {
	mu   sync.Mutex
	pipe io.Writer
}

// sharedGuard returns the guard of this process and starts it on the first call.
var sharedGuard = sync.OnceValues(startGuard)

// startGuard runs the binary of this process again as a guard. The guard's standard
// input is a pipe whose write end only gauntlet has. The guard therefore reads EOF
// when gauntlet has exited, and not before.
func startGuard() (*guardClient, error) {
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
	go func() { _ = guard.Wait() }() // returns only if somebody kills the guard before gauntlet exits
	return &guardClient{pipe: write}, nil
}

// runGuard starts the guard process and returns when it ignores signals.
func runGuard(input *os.File) (*exec.Cmd, error) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{fmt.Sprintf("gauntlet-guard-of-%d", os.Getpid())}
	cmd.Env = []string{fmt.Sprintf("%s=%d", guardVariable, os.Getpid())}
	cmd.Dir = "/" // the guard must not keep a file system busy
	cmd.Stdin = input
	// The guard must not inherit the standard output of gauntlet. A program that
	// reads that output until EOF would otherwise wait for the guard too.
	ready, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	if printed, err := io.ReadAll(ready); err != nil || string(printed) != guardReady {
		_ = cmd.Process.Kill()
		return nil, fmt.Errorf("guard process printed %q, expected %q: %w", printed, guardReady, errors.Join(err, cmd.Wait()))
	}
	return cmd, nil
}

// send sends a message to the guard.
func (g *guardClient) send(m guardMessage) error {
	line, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encoding a message to the guard process: %w", err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, err := g.pipe.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("the guard process, which cleans up after gauntlet, has exited: %w", err)
	}
	return nil
}

// watchGroup makes the guard kill a process group after gauntlet has exited.
// The group leader must be a child that has not been reaped.
func (g *guardClient) watchGroup(pid int) error {
	stat, err := readStat(pid)
	if err != nil {
		return fmt.Errorf("reading the start time of process %d: %w", pid, err)
	}
	return g.send(guardMessage{Watch: &processGroup{PID: pid, Session: stat.session, StartTicks: stat.startTicks}})
}

// unwatchGroup tells the guard no longer to kill a process group. The caller must call
// it before the PID is released. unwatchGroup ignores errors, because a guard that has
// exited watches no group.
func (g *guardClient) unwatchGroup(pid int) { _ = g.send(guardMessage{Unwatch: pid}) }

// GuardDirectory makes the guard remove a directory if gauntlet exits before it calls release.
// dir must be an absolute path to a directory that gauntlet created. The guard
// removes it with all its content.
func GuardDirectory(dir string) (release func(), err error) {
	if !filepath.IsAbs(dir) || filepath.Clean(dir) == "/" {
		return nil, fmt.Errorf("guarding directory %q: expected an absolute path below /", dir)
	}
	guard, err := sharedGuard()
	if err != nil {
		return nil, err
	}
	if err := guard.send(guardMessage{Directory: dir}); err != nil {
		return nil, err
	}
	return func() { _ = guard.send(guardMessage{Directory: dir, Release: true}) }, nil
}

// commandTimeout limits the duration of each command that a guard runs.
const commandTimeout = time.Minute

// commandNumber is the number of the last cleanup command of this process. The number
// identifies a command when it is released.
var commandNumber atomic.Int64

// GuardCommand makes the guard run a command if gauntlet exits before it calls release.
// The command removes something that is neither a process nor a directory, and may
// take up to one minute. The first argument must be an absolute path. env is the
// complete environment of the command.
func GuardCommand(args, env []string) (release func(), err error) {
	if len(args) == 0 || !filepath.IsAbs(args[0]) {
		return nil, fmt.Errorf("guarding with command %q: expected an absolute path as the first argument", args)
	}
	guard, err := sharedGuard()
	if err != nil {
		return nil, err
	}
	number := commandNumber.Add(1)
	if err := guard.send(guardMessage{Command: &cleanupCommand{Number: number, Args: args, Env: env}}); err != nil {
		return nil, err
	}
	return func() { _ = guard.send(guardMessage{Command: &cleanupCommand{Number: number}}) }, nil
}

// runAsGuard is the main function of a guard process.
// It reads messages until gauntlet has exited and then cleans up. It ignores the
// signals that a terminal or a user sends to stop gauntlet.
func runAsGuard(pipe io.Reader, ready io.WriteCloser) {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	// Writing fails if gauntlet has exited already. The pipe then returns EOF below.
	_, _ = io.WriteString(ready, guardReady)
	_ = ready.Close()
	groups := map[int]processGroup{}
	directories := map[string]bool{}
	commands := map[int64]cleanupCommand{}
	lines := bufio.NewScanner(pipe)
	lines.Buffer(nil, messageBytesMax)
	for lines.Scan() {
		var m guardMessage
		if json.Unmarshal(lines.Bytes(), &m) != nil {
			continue // the last line, which is incomplete if gauntlet died while it wrote it
		}
		switch {
		case m.Watch != nil:
			groups[m.Watch.PID] = *m.Watch
		case m.Unwatch != 0:
			delete(groups, m.Unwatch)
		case m.Command != nil && len(m.Command.Args) == 0:
			delete(commands, m.Command.Number)
		case m.Command != nil:
			commands[m.Command.Number] = *m.Command
		case m.Release:
			delete(directories, m.Directory)
		case m.Directory != "":
			directories[m.Directory] = true
		}
	}
	cleanUp(groups, commands, directories)
}

// messageBytesMax limits the length of a message. The environment of a command is its largest part.
const messageBytesMax = 8 << 20

// cleanUp kills the process groups, runs the commands and then removes the directories.
// It repeats the kill until no process is left, because a process may fork
// meanwhile. The directories are last, because processes and commands write to them.
func cleanUp(groups map[int]processGroup, commands map[int64]cleanupCommand, directories map[string]bool) {
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
		_ = os.RemoveAll(dir) // nobody is left to report an error to
	}
}

// run runs the command until it exits or times out. It reports no errors, because gauntlet has exited.
func (c cleanupCommand) run() {
	cmd := exec.Command(c.Args[0], c.Args[1:]...)
	cmd.Env = append([]string{}, c.Env...)
	cmd.Dir = "/"
	if cmd.Start() != nil {
		return
	}
	timer := time.AfterFunc(commandTimeout, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	_ = cmd.Wait()
}

// killGroups kills every running process of the groups and returns their number.
func killGroups(groups map[int]processGroup) int {
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
		if g, ok := groups[stat.group]; ok && g.contains(pid, stat) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			killed++
		}
	}
	return killed
}

// contains reports whether a process belongs to this group and not to a later group with the same ID.
//
// The kernel does not assign the ID again while a process of the group exists. So a
// process does not belong to the group if it is in another session, or started
// before the leader, or has the leader's PID but another start time.
func (g processGroup) contains(pid int, stat procStat) bool {
	if stat.group != g.PID || stat.session != g.Session {
		return false
	}
	if pid == g.PID {
		return stat.startTicks == g.StartTicks
	}
	return stat.startTicks >= g.StartTicks
}

// procStat contains the fields of /proc/<pid>/stat that this package uses; see proc(5).
type procStat struct {
	state          string
	group, session int
	startTicks     uint64
}

// dead reports whether the process is a zombie or being removed.
func (s procStat) dead() bool { return s.state == "Z" || s.state == "X" }

func readStat(pid int) (procStat, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return procStat{}, err
	}
	return parseStat(string(data))
}

// parseStat parses a line of /proc/<pid>/stat.
// The name of the command is in parentheses and may itself contain spaces and
// parentheses, so parsing starts after the last closing parenthesis.
func parseStat(line string) (procStat, error) {
	end := strings.LastIndexByte(line, ')')
	fields := strings.Fields(line[end+1:])
	if end < 0 || len(fields) < 20 {
		return procStat{}, fmt.Errorf("parsing /proc/<pid>/stat: expected at least 20 fields after the command name, found %q", line)
	}
	s := procStat{state: fields[0]}
	for i, target := range map[int]any{2: &s.group, 3: &s.session, 19: &s.startTicks} {
		if _, err := fmt.Sscan(fields[i], target); err != nil {
			return procStat{}, fmt.Errorf("parsing /proc/<pid>/stat: field %d of %q: %w", i+3, line, err)
		}
	}
	return s, nil
}
