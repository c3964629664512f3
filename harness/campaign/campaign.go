// Package hunt makes series of runs, several at a time: what one seed shows, a
// thousand others may not. It keeps the runs that did not pass.
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
	// Series are the runs, in the order in which they are begun. An error in it ends
	// the hunt.
	Series iter.Seq2[Attempt, error]
	// Parallel is how many runs there are at the same time, at least 1.
	Parallel int
	// Duration is how long runs are begun; 0 is until the series is over. A run that
	// has begun is finished.
	Duration time.Duration
	Clock    clock.PassiveClock
}

// Results is what a hunt came home with.
type Results struct {
	// Runs is the number of runs that were made.
	Runs int
	// Failed are the runs that did not pass, in the order in which they were begun.
	// Their directories are kept.
	Failed []reports.Run
	// Passed are the others, in the order in which they ended. Their directories are
	// gone, and so are their results, and the scenarios to run again: of a night there
	// are thousands.
	Passed []reports.Run
}

// failedStartsMax is how many runs on end may break off before they can begin: one may
// be an accident of the machine, more are no accident.
const failedStartsMax = 3

// Run hunts until the series or the time is over, or ctx ends, which is no error.
// An error means that the hunt could not go on; what was caught before is returned
// all the same.
func Run(ctx context.Context, o Options) (Results, error) {
	var bag Results
	caught := map[int]*reports.Run{} // by their places in the series
	broken := 0
	err := RunParallel(ctx, o.Parallel, o.attemptsUntilDeadline(), func(place int, run *reports.Run, err error) error {
		switch {
		case ctx.Err() != nil:
			return nil // it was broken off, and says nothing
		case run == nil:
			if broken++; broken == failedStartsMax {
				return fmt.Errorf("%d runs on end could not begin, the last one: %w", broken, err)
			}
			return nil
		}
		broken = 0
		bag.Runs++
		if run.Verdict != check.Pass {
			caught[place] = run
			return nil
		}
		if err := os.RemoveAll(run.Directory); err != nil {
			return fmt.Errorf("removing a run that passed: %w", err)
		}
		passed := *run
		passed.Directory, passed.Reproduce, passed.Results, passed.Versions = "", "", nil, nil
		bag.Passed = append(bag.Passed, passed)
		return nil
	})
	for _, place := range slices.Sorted(maps.Keys(caught)) {
		bag.Failed = append(bag.Failed, *caught[place])
	}
	return bag, err
}

// attemptsUntilDeadline is the series, for as long as there is time.
func (o *Options) attemptsUntilDeadline() iter.Seq2[Attempt, error] {
	begun := o.Clock.Now()
	return func(yield func(Attempt, error) bool) {
		for attempt, err := range o.Series {
			if o.Duration > 0 && o.Clock.Since(begun) >= o.Duration {
				return
			}
			if !yield(attempt, err) {
				return
			}
		}
	}
}
