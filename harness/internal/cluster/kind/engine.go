package kind

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"

	kindexec "sigs.k8s.io/kind/pkg/exec"
)

// engine runs `docker` commands, the command line client of the container engine.
//
// kind runs `docker` commands too. An environment variable such as DOCKER_HOST therefore selects
// the same container engine for gauntlet and for kind.
type engine struct{}

// program is the command line client of the container engine, with which this package runs
// containers.
const program = "docker"

// The timeouts of `docker` commands.
const (
	engineQueryTimeout  = 10 * time.Second // timeout of `docker` commands that only read
	engineChangeTimeout = time.Minute      // timeout of `docker` commands that change something
	enginePullTimeout   = 5 * time.Minute  // timeout of `docker pull`
)

// check returns nil if the container engine responds and the user has permission to use the engine.
func (e engine) check(ctx context.Context) error {
	_, err := e.run(ctx, engineQueryTimeout, "version", "--format", "{{.Server.Version}}")
	return err
}

// run runs a `docker` command and returns its standard output without surrounding white space. The
// error contains the command and the end of its standard error. For failures in [errorPatterns],
// the error begins with the reason, and often says what to do next.
func (e engine) run(ctx context.Context, timeout time.Duration, args ...string) (string, error) {
	var stdout bytes.Buffer
	err := e.copy(ctx, timeout, &stdout, args...)
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(stdout.String()), nil
}

// copy runs a `docker` command and writes the command's standard output to out. It returns the same
// errors as the method run.
func (e engine) copy(ctx context.Context, timeout time.Duration, out io.Writer, args ...string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("the container engine did not answer within %s", timeout))
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	// The command runs in its own process group, so that Ctrl-C at the terminal interrupts gauntlet
	// but not the command. After Ctrl-C, gauntlet runs further commands to clean up.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second
	var stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = out, &stderr
	err := cmd.Run()
	if err == nil {
		return nil
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return explain(&commandError{args: append([]string{program}, args...), output: stderr.String(), err: err})
}

// lines runs a `docker` command that prints a list, and returns the lines of its standard output.
// No output means nil.
func (e engine) lines(ctx context.Context, args ...string) ([]string, error) {
	out, err := e.run(ctx, engineChangeTimeout, args...)
	if err != nil || out == "" {
		return nil, err
	}
	return strings.Split(out, "\n"), nil
}

// commandError is the error of a failed command. The error text contains the command and the end of
// its output.
type commandError struct {
	args   []string // program and arguments of the command
	output string   // complete output of the command
	err    error    // exit status, or the reason why the command was killed
}

// outputBytesMax is the maximum number of output bytes that the text of a commandError contains.
// Earlier output is cut off.
const outputBytesMax = 2000

func (e *commandError) Error() string {
	output := strings.TrimSpace(e.output)
	if len(output) > outputBytesMax {
		output = "…" + strings.ToValidUTF8(output[len(output)-outputBytesMax:], "")
	}
	var exit *exec.ExitError
	switch {
	case output == "":
		output = e.err.Error()
	case !errors.As(e.err, &exit) || !exit.Exited(): // the output says more than the exit status
		output = fmt.Sprintf("%v: %s", e.err, output)
	}
	return fmt.Sprintf("%s: %s", strings.Join(e.args, " "), output)
}

func (e *commandError) Unwrap() error { return e.err }

// Errors for known reasons why `docker` commands fail. Most of these errors end with the next step
// for the user.
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
	errDiskFull     = errors.New("no space left on the disk of the container engine; remove unused images and containers")
	errInotifyLimit = errors.New("the machine allows too few inotify instances for another node; raise fs.inotify.max_user_instances and fs.inotify.max_user_watches")
)

// inotifyLimitText is the error message of programs that cannot create another inotify instance.
const inotifyLimitText = "too many open files"

// errorPatterns maps texts in the output of a failed command to the reason for the failure. If the
// output contains several of these texts, [explain] uses the first element that matches.
var errorPatterns = []struct {
	text   string // in lower case
	reason error
}{
	{"permission denied while trying to connect", errNoPermission},
	{"dial unix /var/run/docker.sock: connect: permission denied", errNoPermission},
	{"cannot connect to the docker daemon", ErrEngineDown},
	{"error during connect", ErrEngineDown},
	{"did not answer within " + engineQueryTimeout.String(), ErrEngineDown},
	{"port is already allocated", errPortInUse},
	{"address already in use", errPortInUse},
	{"non-overlapping ipv4 address pool", errNoSubnet},
	{"all predefined address pools have been fully subnetted", errNoSubnet},
	{"no space left on device", errDiskFull},
	{inotifyLimitText, errInotifyLimit},
	{"could not find a log line that matches", errNoNode},
	{"no such image", errNoImage},
	{"no such network", errNotFound},
	{"no such container", errNotFound},
}

// explain wraps the error of a failed command, with the reason for the failure in front. The
// command was run by this package or by kind. If [errorPatterns] has no matching reason, explain
// adds none.
func explain(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, exec.ErrNotFound) {
		return ErrNoEngine
	}
	text := err.Error()
	if run := kindexec.RunErrorForError(err); run != nil {
		// The text of kind's error does not contain the output of the command.
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

// failedStep returns the step in which a command of kind failed, such as "failed to init node with
// kubeadm". If err does not name the step, failedStep returns "kind".
func failedStep(err error) string {
	step, _, _ := strings.Cut(err.Error(), ": command ")
	if strings.HasPrefix(step, "command ") {
		return "kind"
	}
	return step
}
