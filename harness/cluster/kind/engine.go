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

// engine is the container engine, by its command `docker`, which is also how
// kind uses it: whatever context or host the user's environment names, both
// mean the same.
type engine struct{}

const program = "docker"

// Bounds on commands of the engine. One that does not answer in time is an
// error of its own.
const (
	engineAnswerMax = 10 * time.Second // whether it is there
	engineWorkMax   = time.Minute      // what changes something
	enginePullMax   = 5 * time.Minute
)

// check is nil when there is an engine that answers and may be used.
func (e engine) check(ctx context.Context) error {
	_, err := e.run(ctx, engineAnswerMax, "version", "--format", "{{.Server.Version}}")
	return err
}

// run runs a command of the engine and returns what it printed. The error has
// the command, what it complained of, and what to do about it where that is
// known.
func (e engine) run(ctx context.Context, bound time.Duration, args ...string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, bound, fmt.Errorf("no answer within %s", bound))
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	// Ctrl-C at the terminal is for gauntlet, which then has things to remove.
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

// lines is run for a command that prints a list.
func (e engine) lines(ctx context.Context, args ...string) ([]string, error) {
	out, err := e.run(ctx, engineWorkMax, args...)
	if err != nil || out == "" {
		return nil, err
	}
	return strings.Split(out, "\n"), nil
}

// commandError is a command that failed, with the end of what it complained of.
type commandError struct {
	args   []string
	output string
	err    error
}

// outputBytesMax is how much of a command's output goes into an error.
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

// The reasons for which an engine does not do as told, that a user can remove.
var (
	// ErrNoEngine: there is none on this machine.
	ErrNoEngine = errors.New("there is no container engine: `docker` is not on PATH (install Docker Engine; on Debian, `make engine` as root does)")
	// ErrEngineDown: there is one, or its command at least, and it does not answer.
	ErrEngineDown = errors.New("the container engine does not answer (start it; `make engine` as root does)")

	errNoPermission  = errors.New("no permission to use the container engine (run as root, or as a member of the group that owns its socket)")
	errPortTaken     = errors.New("a port was taken by somebody else just before its use, each time (try again)")
	errNoSubnet      = errors.New("the container engine has no subnet left for another network (`gauntlet clean` removes what clusters left; `docker network prune` what others did)")
	errNoImage       = errors.New("the engine does not have the image")
	errNoNode        = errors.New("the image does not start as a node: is it one of kind's?")
	errNotAnyMore    = errors.New("it is not there any more")
	errDiskFull      = errors.New("no space is left on the container engine's disk")
	errTooManyOpened = errors.New("the machine allows too few inotify instances for another node (raise fs.inotify.max_user_instances and max_user_watches)")
)

// symptoms are what commands say for each reason, the first match counts.
var symptoms = []struct {
	words  string
	reason error
}{
	{"permission denied while trying to connect", errNoPermission},
	{"dial unix /var/run/docker.sock: connect: permission denied", errNoPermission},
	{"cannot connect to the docker daemon", ErrEngineDown},
	{"error during connect", ErrEngineDown},
	{"no answer within " + engineAnswerMax.String(), ErrEngineDown},
	{"port is already allocated", errPortTaken},
	{"address already in use", errPortTaken},
	{"non-overlapping ipv4 address pool", errNoSubnet},
	{"all predefined address pools have been fully subnetted", errNoSubnet},
	{"no space left on device", errDiskFull},
	{"too many open files", errTooManyOpened},
	{"could not find a log line that matches", errNoNode},
	{"no such image", errNoImage},
	{"no such network", errNotAnyMore},
	{"no such container", errNotAnyMore},
}

// explain puts the reason before the error of a command, where it is known. It
// takes errors of this package's commands and of kind's.
func explain(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, exec.ErrNotFound) {
		return ErrNoEngine
	}
	text := err.Error()
	if run := kindexec.RunErrorForError(err); run != nil {
		// kind's own text leaves the command's output out.
		err = fmt.Errorf("%s: %w", outline(err), &commandError{args: run.Command, output: string(run.Output), err: run.Inner})
		text = string(run.Output)
	}
	text = strings.ToLower(text)
	for _, symptom := range symptoms {
		if strings.Contains(text, symptom.words) {
			return fmt.Errorf("%w: %w", symptom.reason, err)
		}
	}
	return err
}

// outline is what kind was doing when a command of its failed.
func outline(err error) string {
	doing, _, _ := strings.Cut(err.Error(), ": command ")
	if strings.HasPrefix(doing, "command ") {
		return "kind"
	}
	return doing
}
