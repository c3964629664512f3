// Command gauntlet runs chaos scenarios against Kubernetes' workload controllers
// and judges what they did.
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

// What gauntlet exits with.
const (
	exitPass    = 0 // every check passed
	exitFail    = 1 // a check failed
	exitUnknown = 2 // nothing failed, but a verdict is unknown or a run broke off
	exitUsage   = 3 // bad usage: nothing was run
)

// revision is set by the linker.
var revision = "unknown"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends gauntlet at once; its guard cleans up.
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

// exitCode is what gauntlet exits with, given what the verdicts amount to and
// the error of the command.
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

// unfinishedError is an error of a run, as opposed to one of its user: any other
// error that a command returns is about how it was called.
type unfinishedError struct{ err error }

func (e *unfinishedError) Error() string { return e.err.Error() }
func (e *unfinishedError) Unwrap() error { return e.err }

// newRoot returns the command line. Commands leave what their verdicts amount to
// in code.
func newRoot(code *int) *cobra.Command {
	root := &cobra.Command{
		Use:   "gauntlet",
		Short: "Chaos and conformance for Kubernetes' workload controllers",
		Long: `gauntlet puts an unmodified controller binary on a real control plane, stands a
fault proxy between the two, lets things go wrong, records everything, and
judges what the controllers did.

Exit status: 0 every check passed, 1 a check failed, 2 a verdict is unknown or a
run broke off, 3 bad usage.`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(newRun(code), newNightly(code), newSweep(code), newMutants(code), newShrink(code), newGenerate(), newCheck(code), newReport(code), newCoverage(), newCompare(code), newList(), newUp(), newDown(), newClean(), newKeeper(), newRelay(), newImage(), newVersion())
	return root
}
