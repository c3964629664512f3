// Command gauntlet runs chaos scenarios against Kubernetes workload controllers and
// checks their behavior.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
	"github.com/kube-gauntlet/gauntlet/harness/internal/setup"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// The exit codes of gauntlet. docs/reference/exit-codes.md documents them for users.
const (
	exitPass    = 0 // every check passed
	exitFail    = 1 // a check failed
	exitUnknown = 2 // no check failed, but a verdict is unknown or a run was aborted
	exitUsage   = 3 // the command line or an input is wrong; nothing ran
)

// revision is the version of gauntlet, such as a Git commit. The linker sets this variable in a
// build.
var revision = "unknown"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), endingSignals()...)
	// A second signal ends gauntlet immediately. The guard process then removes the processes and
	// directories that gauntlet created. Programs such as timeout(1) send a signal twice at the same time.
	context.AfterFunc(ctx, func() { time.AfterFunc(sameInterrupt, stop) })
	inputfile.Interrupt(ctx.Done())
	// If the reader of standard output or standard error has ended, writes fail with EPIPE. Without
	// this call, SIGPIPE would end gauntlet before it has written its reports. In contrast to
	// signal.Ignore, programs that gauntlet starts keep the default action of the signal.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	discardLog()
	code := exitPass
	root := newRoot(&code)
	err := runRoot(ctx, root)
	if err != nil {
		fmt.Fprintln(root.ErrOrStderr(), "gauntlet:", reports.Printable(clipWords(escapeArguments(cluster.ConnectionReason(err), os.Args))))
	}
	stop()
	os.Exit(exitCode(code, err))
}

// discardLog discards the log of gauntlet's own API clients. Commands return the errors of the clients.
func discardLog() {
	var flags flag.FlagSet
	klog.InitFlags(&flags)
	for name, value := range map[string]string{"logtostderr": "false", "stderrthreshold": "FATAL"} {
		if err := flags.Set(name, value); err != nil {
			panic(err) // klog has no such flag
		}
	}
	klog.SetOutput(io.Discard)
}

// sameInterrupt is the time after a signal in which a second signal belongs to the first one.
const sameInterrupt = 200 * time.Millisecond

// endingSignals returns the signals that end gauntlet after it has written its reports. A terminal
// that closes sends SIGHUP, unless nohup made gauntlet ignore it.
func endingSignals() []os.Signal {
	all := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	return all
}

// exitCode returns the exit code of gauntlet after a command has ended. The argument verdicts is
// the exit code for the command's verdicts, and err is the command's error. Without an error,
// exitCode returns verdicts. For an unfinishedError or an interrupted read, it returns exitFail if a
// check failed, and exitUnknown otherwise. It returns exitUsage for any other error. It also does so if no
// check failed, but the environment has no cache directory or no go command, or the API server refused a
// manifest.
func exitCode(verdicts int, err error) int {
	var unfinished *unfinishedError
	var refused *cluster.RefusedError
	switch {
	case err == nil:
		return verdicts
	case !errors.As(err, &unfinished) && !errors.Is(err, inputfile.ErrInterrupted):
		return exitUsage
	case verdicts == exitFail:
		return exitFail
	case errors.Is(err, setup.ErrNoCache), errors.Is(err, setup.ErrCache), errors.Is(err, setup.ErrNoGo), errors.As(err, &refused):
		return exitUsage
	default:
		return exitUnknown
	}
}

// unfinishedError says why a command could not complete its work. All other errors of a command
// are wrong arguments or input files, for which gauntlet exits with exitUsage.
type unfinishedError struct{ err error }

func (e *unfinishedError) Error() string { return e.err.Error() }
func (e *unfinishedError) Unwrap() error { return e.err }

// newRoot returns the command gauntlet with all its subcommands. A subcommand stores the exit code
// for its verdicts in *code.
func newRoot(code *int) *cobra.Command {
	root := &cobra.Command{
		Use:   "gauntlet",
		Short: "Chaos and conformance tests for Kubernetes workload controllers",
		Long: `gauntlet tests whether a Kubernetes controller keeps its guarantees when API requests
fail, watch events are late, processes crash and pods churn.

It runs the subject, that is the unmodified controller under test, on a real control
plane. A fault proxy between the two injects faults and records every request, response
and watch event. Checks then decide from this history whether the controller kept its
guarantees.

The subject can be any binary or image that accepts the flags of
kube-controller-manager and runs its ReplicationController, ReplicaSet, Deployment,
Endpoints or CronJob controller. A subject file describes any other controller, such as
an operator. To such a controller, only the general checks apply: they assume nothing
about what the controller does with its objects.

Exit status: 0 every run has the verdict pass or known-upstream; 1 a check failed; 2 a
verdict is unknown or a run was aborted; 3 the command line or an input is wrong.`,
		Example: `  gauntlet run watch-delay-pods
  gauntlet run my-scenario.yaml --subject=exec:./my-kcm
  gauntlet explain check/max-surge`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(newRun(code), newNightly(code), newSweep(code), newExplore(code), newBaseline(code), newMutants(code), newShrink(code), newFleet(code), newGenerate(), newCheck(code), newReport(code), newCoverage(), newCompare(code), newValidate(), newList(), newExplain(), newUp(), newDown(), newClean(), newStandingHost(), newRelay(), newImage(), newSetup(), newVersion())
	root.Flags().Bool("version", false, "print the version of gauntlet") // the field Version of cobra would accept further arguments
	acceptRenamedFlags(root)
	acceptOneValue(root)
	completeFlags(root)
	return root
}
