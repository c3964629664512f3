// Package hunt runs scenarios with one seed after another until its time is up,
// and keeps the runs that did not pass: what one seed shows, a thousand others
// may not.
package hunt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// Options says what to run and for how long.
type Options struct {
	// Seed is that of the first round. Every round has the next one.
	Seed uint64
	// Duration is how long runs are begun. One that has begun is finished.
	Duration time.Duration
	// Round returns the runs of a round.
	Round func(seed uint64) ([]Attempt, error)
	Clock clock.PassiveClock
}

// Attempt makes one run. Without a run there is an error, which says what kept it
// from beginning.
type Attempt func(ctx context.Context) (*reports.Run, error)

// Bag is what a hunt came home with.
type Bag struct {
	// Runs is the number of runs that were made, and Seed the last round's.
	Runs int
	Seed uint64
	// Caught are the runs that did not pass, in the order in which they were made.
	// Their directories are kept, those of the others are not.
	Caught []reports.Run
}

// brokenMax is how many runs on end may break off before they can begin: one may
// be an accident of the machine, more are no accident.
const brokenMax = 3

// Run hunts until the time is up, or ctx ends, which is no error. An error means
// that the hunt could not go on; what was caught before is returned all the same.
func Run(ctx context.Context, o Options) (bag Bag, err error) {
	begun := o.Clock.Now()
	over := func() bool { return ctx.Err() != nil || o.Clock.Since(begun) >= o.Duration }
	broken := 0
	for bag.Seed = o.Seed; ; bag.Seed++ {
		round, err := o.Round(bag.Seed)
		if err != nil {
			return bag, err
		}
		for _, attempt := range round {
			if over() {
				return bag, nil
			}
			run, err := attempt(ctx)
			switch {
			case ctx.Err() != nil:
				return bag, nil // it was broken off, and says nothing
			case run != nil:
				broken = 0
			default:
				if broken++; broken == brokenMax {
					return bag, fmt.Errorf("%d runs on end could not begin, the last one: %w", broken, err)
				}
				continue
			}
			if err := bag.add(run); err != nil {
				return bag, err
			}
		}
		if len(round) == 0 {
			return bag, errors.New("a round without runs")
		}
	}
}

// add counts a run, keeps it if it did not pass, and removes it if it did.
func (b *Bag) add(run *reports.Run) error {
	b.Runs++
	if run.Verdict != check.Pass {
		b.Caught = append(b.Caught, *run)
		return nil
	}
	if err := os.RemoveAll(run.Directory); err != nil {
		return fmt.Errorf("removing a run that passed: %w", err)
	}
	return nil
}
