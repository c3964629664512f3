// Command gauntlet runs chaos scenarios against Kubernetes workload controllers and
// checks their behavior.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// The exit statuses of gauntlet.
const (
	exitPass    = 0 // every check passed
	exitFail    = 1 // a check failed
	exitUnknown = 2 // no check failed, but a verdict is unknown or a run was aborted
	exitUsage   = 3 // the command line or an input is wrong; nothing ran
)

// revision is set by the linker.
var revision = "unknown"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The second signal ends gauntlet immediately. The guard process then cleans up.
	context.AfterFunc(ctx, stop)
	code := exitPass
	root := newRoot(&code)
	err := root.ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintln(root.ErrOrStderr(), "gauntlet:", err)
	}
	stop()
	os.Exit(exitCode(code, err))
}

// exitCode returns the exit status of gauntlet. It combines the exit code of the
// verdicts with the error of the command.
func exitCode(verdicts int, err error) int {
	var unfinished *unfinishedError
	switch {
	case err == nil:
		return verdicts
	case !errors.As(err, &unfinished):
		return exitUsage
	case verdicts == exitFail:
		return exitFail
	default:
		return exitUnknown
	}
}

// unfinishedError is an error that ended a run early. Any other error of a command is
// a mistake in its arguments or input files, and exits with exitUsage.
type unfinishedError struct{ err error }

func (e *unfinishedError) Error() string { return e.err.Error() }
func (e *unfinishedError) Unwrap() error { return e.err }

// newRoot returns the root command. Each command stores the exit code of its verdicts
// in code.
func newRoot(code *int) *cobra.Command {
	root := &cobra.Command{
		Use:   "gauntlet",
		Short: "Chaos and conformance tests for Kubernetes workload controllers",
		Long: `gauntlet runs an unmodified controller binary on a real control plane. A fault
proxy between the two injects faults and records every request, response and watch
event. Checks then decide from this history whether the controllers kept their
guarantees.

Exit status: 0 every check passed; 1 a check failed; 2 a verdict is unknown or a
run was aborted; 3 the command line or an input is wrong.`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(newRun(code), newNightly(code), newSweep(code), newMutants(code), newShrink(code), newGenerate(), newCheck(code), newReport(code), newCoverage(), newCompare(code), newList(), newUp(), newDown(), newClean(), newStandingHost(), newRelay(), newImage(), newVersion())
	acceptRenamedFlags(root)
	return root
}
