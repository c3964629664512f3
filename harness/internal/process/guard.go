package process

import (
	"bufio"
	"context"
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

// guardVariable names the environment variable that turns this program into a guard. The guard
// is a second gauntlet process that cleans up after the first one has exited. The value is the
// PID of the first process.
const guardVariable = "GAUNTLET_GUARD_OF"

// guardReady is the text that a guard prints as soon as it ignores SIGINT, SIGTERM, SIGHUP and
// SIGQUIT. The gauntlet process that starts the guard waits for this text.
const guardReady = "ready"

// init runs this process as a guard, instead of the main function, if guardVariable is set.
func init() {
	if os.Getenv(guardVariable) != "" {
		runAsGuard(os.Stdin, os.Stdout)
		os.Exit(0)
	}
}

// guardMessage is a message from gauntlet to its guard process. It adds or cancels one cleanup
// action. The guard performs the actions after gauntlet has exited.
//
// gauntlet sends each message as one line of JSON. Exactly one of Watch, Unwatch, Directory and
// Command is set.
type guardMessage struct {
	// Watch is a process group. The guard kills all its processes during the cleanup.
	Watch *processGroup `json:"watch,omitempty"`
	// Unwatch is the ID of a process group that an earlier message named in Watch. It cancels
	// that message: the guard does not kill the group.
	Unwatch int `json:"forget,omitempty"`
	// Directory is the absolute path of a directory. The guard removes the directory during the
	// cleanup, unless Release is true.
	Directory string `json:"directory,omitempty"`
	// Release cancels an earlier message with the same Directory: the guard does not remove the
	// directory.
	Release bool `json:"keep,omitempty"`
	// Command is a command that the guard runs during the cleanup. A command without arguments
	// cancels the earlier command with the same number.
	Command *cleanupCommand `json:"command,omitempty"`
}

// cleanupCommand is a command that the guard runs after gauntlet has exited. It removes
// something other than a process or a directory, for example a container.
type cleanupCommand struct {
	Number int64    `json:"number"`         // a later message with this number cancels the command
	Args   []string `json:"args,omitempty"` // absolute path of the program, then its arguments; empty to cancel
	Env    []string `json:"env,omitempty"`  // complete environment of the command, as "NAME=value"
}

// processGroup identifies a process group for the guard. The kernel may reuse the ID of a
// process group. The session ID and the start time distinguish this group from a later group
// with the same ID.
type processGroup struct {
	PID        int    `json:"pid"`        // of the group leader; also the ID of the group
	Session    int    `json:"session"`    // ID of the session to which the process group belongs
	StartTicks uint64 `json:"startTicks"` // start time of the group leader, in clock ticks since boot
}

// guardClient sends messages to the guard process of this gauntlet process, through a pipe.
type guardClient struct {
	mu   sync.Mutex // held during a write to the pipe
	pipe io.Writer
}

// sharedGuard returns a client for this process's guard, the second process that cleans up after
// gauntlet. The first call starts the guard; later calls return the same client.
var sharedGuard = sync.OnceValues(startGuard)

// startGuard starts this executable a second time, as a guard process. The guard's standard
// input is the read end of a pipe. Only gauntlet has the write end, so the guard reads EOF as
// soon as gauntlet has exited.
func startGuard() (*guardClient, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("starting the guard process, which cleans up after gauntlet: %w", err)
	}
	defer read.Close()
	guard, err := runGuard(read)
	if err != nil {
		write.Close()
		return nil, fmt.Errorf("starting the guard process, which cleans up after gauntlet: %w", err)
	}
	go func() { _ = guard.Wait() }() // reaps the guard if somebody kills it before gauntlet exits
	return &guardClient{pipe: write}, nil
}

// runGuard starts the guard process, and returns after the guard has printed guardReady. The
// guard reads the messages of gauntlet from input.
func runGuard(input *os.File) (*exec.Cmd, error) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{fmt.Sprintf("gauntlet-guard-of-%d", os.Getpid())}
	cmd.Env = []string{fmt.Sprintf("%s=%d", guardVariable, os.Getpid())}
	cmd.Dir = "/" // so that users can unmount the file system of gauntlet's working directory
	cmd.Stdin = input
	// The guard must not inherit the standard output of gauntlet. A program that reads the output
	// of gauntlet until EOF would otherwise also wait for the guard to exit.
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
		return nil, fmt.Errorf("the guard process, which cleans up after gauntlet, printed %q, expected %q: %w", printed, guardReady, errors.Join(err, cmd.Wait()))
	}
	return cmd, nil
}

// send sends a message to the guard process. It returns an error if the guard has exited.
func (g *guardClient) send(m guardMessage) error {
	line, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encoding a message to the guard process, which cleans up after gauntlet: %w", err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, err := g.pipe.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("the guard process, which cleans up after gauntlet, has exited: %w", err)
	}
	return nil
}

// watchGroup makes the guard kill a process group as soon as gauntlet has exited. The argument
// pid is the PID of the group leader, a child process of gauntlet. The caller must not have
// reaped the child yet.
func (g *guardClient) watchGroup(pid int) error {
	stat, err := readStat(pid)
	if err != nil {
		return fmt.Errorf("reading the start time of process %d: %w", pid, err)
	}
	return g.send(guardMessage{Watch: &processGroup{PID: pid, Session: stat.session, StartTicks: stat.startTicks}})
}

// unwatchGroup tells the guard not to kill a process group any more. The argument pid is the PID of
// the group leader.
//
// Call unwatchGroup before you reap the group leader: the kernel may reuse the PID of a reaped
// process. unwatchGroup ignores errors. An error means that the guard has exited, and then the
// guard kills nothing.
func (g *guardClient) unwatchGroup(pid int) { _ = g.send(guardMessage{Unwatch: pid}) }

// GuardGroup makes the guard process kill a process group after gauntlet has exited, unless the caller
// calls release first. The argument pid is the PID of the group leader, a child process of gauntlet.
// Call GuardGroup and release before you reap the child. [Start] does both for its processes.
func GuardGroup(pid int) (release func(), err error) {
	guard, err := sharedGuard()
	if err != nil {
		return nil, err
	}
	if err := guard.watchGroup(pid); err != nil {
		return nil, err
	}
	return func() { guard.unwatchGroup(pid) }, nil
}

// GuardDirectory makes the guard process remove a directory, unless the caller calls release
// first. The guard removes the directory, with all its content, after gauntlet has exited. The
// argument dir is the absolute path of a directory that gauntlet has created or will create.
func GuardDirectory(dir string) (release func(), err error) {
	if !filepath.IsAbs(dir) || filepath.Clean(dir) == "/" {
		return nil, fmt.Errorf("registering directory %q for removal: expected an absolute path below /", dir)
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

// commandTimeout is the maximum duration of a cleanup command. After this time, the guard process
// kills the command.
const commandTimeout = time.Minute

// commandNumber is the number of the last cleanup command that this process has sent to its
// guard. See [cleanupCommand].
var commandNumber atomic.Int64

// GuardCommand makes the guard process run a command, unless the caller calls release first. The
// guard runs the command after gauntlet has exited, and kills it after one minute. Use
// GuardCommand to remove something other than a process or a directory, for example a container.
//
// The first element of args is the absolute path of the program. The argument env is the
// complete environment of the command.
func GuardCommand(args, env []string) (release func(), err error) {
	if len(args) == 0 || !filepath.IsAbs(args[0]) {
		return nil, fmt.Errorf("registering cleanup command %q: expected the absolute path of a program as the first element", args)
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

// runAsGuard is the main function of a guard process. It ignores SIGINT, SIGTERM, SIGHUP and
// SIGQUIT, and then writes the text guardReady to the argument ready. It reads the messages of
// gauntlet from the argument pipe until EOF, which means that gauntlet has exited. It then cleans
// up.
func runAsGuard(pipe io.Reader, ready io.WriteCloser) {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	// Ignore errors: an error means that gauntlet has exited, and then the scan below reads EOF.
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
			continue // gauntlet died while it wrote this line, so no further line follows
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

// RunOnly runs the given function, instead of main, if the first argument of this program equals
// name. The function gets the remaining arguments. The program then exits with status 0, or with
// status 1 if the function returns an error. If the first argument differs, RunOnly does nothing.
//
// Call RunOnly in an init function. The guard can then run the function as a [GuardCommand] with
// the program /proc/self/exe: the guard is the same executable.
func RunOnly(name string, function func(ctx context.Context, args []string) error) {
	if len(os.Args) < 2 || os.Args[1] != name {
		return
	}
	if err := function(context.Background(), os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// messageBytesMax is the maximum length of one message to the guard process, in bytes. The longest
// messages contain the environment of a cleanup command.
const messageBytesMax = 8 << 20

// cleanUp kills the process groups, then runs the commands, then removes the directories. It
// removes the directories last, because processes and commands may write to them.
//
// A process may fork before SIGKILL reaches it. cleanUp therefore repeats the kill until the
// groups have no process left, at most 1000 times.
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
		_ = os.RemoveAll(dir) // ignore errors: gauntlet has exited, so nobody could report them
	}
}

// run runs the cleanup command, and kills it after [commandTimeout]. It ignores errors, because
// gauntlet has exited and nobody could report the errors.
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

// killGroups sends SIGKILL to every running process in the groups. It returns the number of these
// processes, so that the caller can repeat the call until no process is left. The key of groups is
// the ID of the process group.
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

// contains reports whether a process is in this process group, and not in a later group with the
// same ID. The argument stat is the content of /proc/<pid>/stat.
//
// The kernel does not reuse the ID of a process group while the group has a process. A process
// with another session, or a process older than the group leader, is therefore in another group.
// A process whose PID is the group ID must be the leader, and must have the leader's start time.
func (g processGroup) contains(pid int, stat procStat) bool {
	if stat.group != g.PID || stat.session != g.Session {
		return false
	}
	if pid == g.PID {
		return stat.startTicks == g.StartTicks
	}
	return stat.startTicks >= g.StartTicks
}

// procStat contains the fields of /proc/<pid>/stat that this package reads; see proc(5).
type procStat struct {
	state      string // one letter, such as "R" (running) or "Z" (zombie)
	group      int    // ID of the process group
	session    int    // ID of the process's session
	startTicks uint64 // start time of the process, in clock ticks since boot
}

// dead reports whether the process is a zombie (state "Z") or dead (state "X"). Such a process
// still has a directory in /proc.
func (s procStat) dead() bool { return s.state == "Z" || s.state == "X" }

// readStat reads /proc/<pid>/stat. The error wraps fs.ErrNotExist if there is no such process.
func readStat(pid int) (procStat, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return procStat{}, err
	}
	return parseStat(string(data))
}

// parseStat parses the content of /proc/<pid>/stat. The second field is the command name in
// parentheses, and the name may itself contain spaces and parentheses. parseStat therefore
// parses only the fields after the last closing parenthesis.
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
