// Package campaign makes many runs, several at the same time. For example, it makes one run for
// each seed of a range. It keeps the run directories of the runs that did not pass.
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

// Options says which runs a campaign (a series of runs) makes, how many at a time, and for how
// long.
type Options struct {
	// Series yields one function for each run, in the order in which the runs start. If Series
	// yields an error, the campaign ends.
	Series iter.Seq2[Attempt, error]
	// Planned is the number of runs in Series, or 0 if the number is unknown.
	Planned int
	// Parallel is the maximum number of runs at the same time.
	Parallel *Limit
	// Duration is the time from the call of Run after which no further run starts. The campaign
	// still completes the runs in progress. With 0, the campaign ends at the end of Series.
	Duration time.Duration
	Clock    clock.PassiveClock
}

// Results has the completed runs of a campaign, which is a series of runs.
type Results struct {
	// Runs is the number of completed runs.
	Runs int
	// Failed has the runs with a verdict other than pass, in the order in which they started. The
	// run directories are kept.
	Failed []reports.Run
	// Passed has the runs with the verdict pass, in the order in which they ended. Because a
	// campaign can have thousands of runs, it removes the directories of passed runs. The fields
	// Directory, Reproduce, Results and Versions of these runs are empty.
	Passed []reports.Run
	// Interrupted says after how many runs ctx ended, such as "interrupted after 7 of 40 runs". It
	// is empty if all runs were completed.
	Interrupted string
}

// failedStartsMax is the number of consecutive failed starts after which the campaign ends. A start
// fails if the run has no report. After fewer failed starts, the campaign continues, because the
// reason may be temporary.
const failedStartsMax = 3

// Run makes the runs of o.Series, several at the same time, and returns their results. After
// o.Duration, or after ctx has ended, Run starts no further run, and waits for the runs in
// progress. The end of ctx is not an error: [Results.Interrupted] says how many runs were
// completed.
//
// An error means that the campaign could not continue, for example because several consecutive runs
// could not start. The returned results are valid even with an error.
func Run(ctx context.Context, o Options) (Results, error) {
	var results Results
	failed := map[int]*reports.Run{} // the runs that did not pass, by their index in the series
	failedStarts := 0
	err := RunParallel(ctx, o.Parallel, o.attemptsUntilDeadline(), func(index int, run *reports.Run, err error) error {
		switch {
		case ctx.Err() != nil && err != nil && (run == nil || run.Verdict != check.Fail):
			return nil // the run was interrupted, so its verdict says nothing about the subject
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
	switch {
	case ctx.Err() == nil || o.Planned > 0 && results.Runs >= o.Planned:
	case o.Planned > 0:
		results.Interrupted = fmt.Sprintf("interrupted after %d of %d runs", results.Runs, o.Planned)
	default:
		results.Interrupted = fmt.Sprintf("interrupted; runs completed: %d", results.Runs)
	}
	return results, err
}

// attemptsUntilDeadline returns an iterator over the runs in o.Series. The iterator ends early when
// o.Duration has passed.
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
