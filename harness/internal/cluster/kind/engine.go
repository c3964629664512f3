package kind

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	kindexec "sigs.k8s.io/kind/pkg/exec"
)

// engine runs commands of the container engine with its command line client `docker`.
// kind uses the same client, so both use the engine that the user's environment
// selects.
type engine struct{}

const program = "docker"

// Timeouts of commands of the engine.
const (
	engineQueryTimeout  = 10 * time.Second // commands that only read
	engineChangeTimeout = time.Minute      // commands that change something
	enginePullTimeout   = 5 * time.Minute
)

// check returns nil if the container engine is running and the user may use it.
func (e engine) check(ctx context.Context) error {
	_, err := e.run(ctx, engineQueryTimeout, "version", "--format", "{{.Server.Version}}")
	return err
}

// run runs a command of the engine and returns its standard output.
// The error contains the command, its standard error and, if the reason is known, the
// next step.
func (e engine) run(ctx context.Context, timeout time.Duration, args ...string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer within %s", timeout))
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	// Ctrl-C at the terminal must reach only gauntlet, which then runs further commands
	// to clean up.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if err == nil {
		return strings.TrimSpace(stdout.String()), nil
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return "", explain(&commandError{args: append([]string{program}, args...), output: stderr.String(), err: err})
}

// lines runs a command of the engine and returns the lines of its standard output.
func (e engine) lines(ctx context.Context, args ...string) ([]string, error) {
	out, err := e.run(ctx, engineChangeTimeout, args...)
	if err != nil || out == "" {
		return nil, err
	}
	return strings.Split(out, "\n"), nil
}

// commandError is the error of a failed command with the end of its output.
type commandError struct {
	args   []string
	output string
	err    error
}

// outputBytesMax limits how much of a command's output its error contains.
const outputBytesMax = 2000

func (e *commandError) Error() string {
	output := strings.TrimSpace(e.output)
	if len(output) > outputBytesMax {
		output = "…" + strings.ToValidUTF8(output[len(output)-outputBytesMax:], "")
	}
	if output != "" {
		output = ": " + output
	}
	return fmt.Sprintf("%s: %v%s", strings.Join(e.args, " "), e.err, output)
}

func (e *commandError) Unwrap() error { return e.err }

// The known reasons why engine commands fail. Most texts contain the next step.
var (
	// ErrNoEngine means that no container engine is installed on this machine.
	ErrNoEngine = errors.New("there is no container engine: `docker` is not on PATH; install Docker Engine (on Debian, run `make engine` as root)")
	// ErrEngineDown means that the container engine is installed but does not respond.
	ErrEngineDown = errors.New("the container engine does not respond; start it (on Debian, run `make engine` as root)")

	errNoPermission = errors.New("no permission to use the container engine; run as root, or as a member of the group that owns its socket")
	errPortInUse    = errors.New("another process uses a port that was free shortly before; try again")
	errNoSubnet     = errors.New("the container engine has no subnet left for another network; remove leftover clusters with `gauntlet clean`, and other unused networks with `docker network prune`")
	errNoImage      = errors.New("the container engine does not have the image")
	errNoNode       = errors.New("the image does not start as a node; use a node image of kind")
	errNotFound     = errors.New("the container, network or node does not exist")
	errDiskFull     = errors.New("no space left on the disk of the container engine")
	errInotifyLimit = errors.New("the machine allows too few inotify instances for another node; raise fs.inotify.max_user_instances and fs.inotify.max_user_watches")
)

// errorPatterns maps a text in the output of a command to the reason for the failure.
// The first pattern that matches applies.
var errorPatterns = []struct {
	text   string // in lower case
	reason error
}{
	{"permission denied while trying to connect", errNoPermission},
	{"dial unix /var/run/docker.sock: connect: permission denied", errNoPermission},
	{"cannot connect to the docker daemon", ErrEngineDown},
	{"error during connect", ErrEngineDown},
	{"no answer within " + engineQueryTimeout.String(), ErrEngineDown},
	{"port is already allocated", errPortInUse},
	{"address already in use", errPortInUse},
	{"non-overlapping ipv4 address pool", errNoSubnet},
	{"all predefined address pools have been fully subnetted", errNoSubnet},
	{"no space left on device", errDiskFull},
	{"too many open files", errInotifyLimit},
	{"could not find a log line that matches", errNoNode},
	{"no such image", errNoImage},
	{"no such network", errNotFound},
	{"no such container", errNotFound},
}

// explain adds the known reason, if there is one, in front of the error of a command.
// The command was run by this package or by kind.
func explain(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, exec.ErrNotFound) {
		return ErrNoEngine
	}
	text := err.Error()
	if run := kindexec.RunErrorForError(err); run != nil {
		// The error text of kind does not contain the output of the command.
		err = fmt.Errorf("%s: %w", failedStep(err), &commandError{args: run.Command, output: string(run.Output), err: run.Inner})
		text = string(run.Output)
	}
	text = strings.ToLower(text)
	for _, pattern := range errorPatterns {
		if strings.Contains(text, pattern.text) {
			return fmt.Errorf("%w: %w", pattern.reason, err)
		}
	}
	return err
}

// failedStep returns the step of kind in which a command failed.
func failedStep(err error) string {
	step, _, _ := strings.Cut(err.Error(), ": command ")
	if strings.HasPrefix(step, "command ") {
		return "kind"
	}
	return step
}
