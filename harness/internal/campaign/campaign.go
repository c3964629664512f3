// Package campaign runs a series of runs in parallel, for example with a different seed
// each. It keeps the directories of the runs that did not pass.
package campaign

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"os"
	"slices"
	"time"

	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// Options says what to run and for how long.
type Options struct {
	// Series yields the runs in the order of their start. An error ends the campaign.
	Series iter.Seq2[Attempt, error]
	// Parallel is the maximum number of concurrent runs, at least 1.
	Parallel int
	// Duration is the time after which no further run starts; 0 means that only the
	// series ends the campaign. Runs in progress are completed.
	Duration time.Duration
	Clock    clock.PassiveClock
}

// Results are the runs of a campaign.
type Results struct {
	// Runs is the number of runs.
	Runs int
	// Failed are the runs that did not pass, in the order of their start. Their
	// directories are kept.
	Failed []reports.Run
	// Passed are the runs that passed, in the order of their end. Their directories are
	// removed and their details dropped, because a campaign can have thousands of runs.
	Passed []reports.Run
}

// failedStartsMax is the number of consecutive failed starts that ends a campaign.
// Fewer failed starts may have a temporary reason, so the campaign continues.
const failedStartsMax = 3

// Run runs the series until the series ends, the duration is over, or ctx ends. The end
// of ctx is no error. An error means that the campaign cannot continue. The results are
// valid in any case.
func Run(ctx context.Context, o Options) (Results, error) {
	var results Results
	failed := map[int]*reports.Run{} // failed runs by their index in the series
	failedStarts := 0
	err := RunParallel(ctx, o.Parallel, o.attemptsUntilDeadline(), func(index int, run *reports.Run, err error) error {
		switch {
		case ctx.Err() != nil:
			return nil // the run was interrupted, so its result means nothing
		case run == nil:
			if failedStarts++; failedStarts == failedStartsMax {
				return fmt.Errorf("%d consecutive runs could not start, the last one: %w", failedStarts, err)
			}
			return nil
		}
		failedStarts = 0
		results.Runs++
		if run.Verdict != check.Pass {
			failed[index] = run
			return nil
		}
		if err := os.RemoveAll(run.Directory); err != nil {
			return fmt.Errorf("removing the directory of a passed run: %w", err)
		}
		passed := *run
		passed.Directory, passed.Reproduce, passed.Results, passed.Versions = "", "", nil, nil
		results.Passed = append(results.Passed, passed)
		return nil
	})
	for _, index := range slices.Sorted(maps.Keys(failed)) {
		results.Failed = append(results.Failed, *failed[index])
	}
	return results, err
}

// attemptsUntilDeadline yields the series until the duration is over.
func (o *Options) attemptsUntilDeadline() iter.Seq2[Attempt, error] {
	started := o.Clock.Now()
	return func(yield func(Attempt, error) bool) {
		for attempt, err := range o.Series {
			if o.Duration > 0 && o.Clock.Since(started) >= o.Duration {
				return
			}
			if !yield(attempt, err) {
				return
			}
		}
	}
}
