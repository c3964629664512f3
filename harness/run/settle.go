package run

import (
	"context"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// settle waits, with every fault healed, until the subject has converged and
// then written nothing for as long as the scenario demands, and records the end.
// That the bound passes first is for the checks to judge, no error.
func (s *stage) settle(ctx context.Context) error {
	s.mark(history.PhaseSettle)
	s.progress("all faults healed, up to %s to converge", s.Scenario.Settle.Within)
	begun := s.Clock.Now()
	bounded, cancel := context.WithTimeout(ctx, s.Scenario.Settle.Within)
	defer cancel()
	for quiet := false; !quiet && s.monitor.waitConverged(bounded); {
		s.mark(history.PhaseQuiet)
		quiet = s.monitor.waitQuiet(ctx, s.Clock, s.Scenario.Settle.Quiet)
		if !quiet && bounded.Err() != nil {
			// It has had its time. What it writes from here on is judged.
			s.mark(history.PhaseQuiet)
			s.sleep(ctx, s.Scenario.Settle.Quiet, nil)
			break
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	s.progress("settled after %.1f s", s.Clock.Since(begun).Seconds())
	caughtUp, cancel := context.WithTimeout(ctx, catchUpWithin)
	defer cancel()
	s.observer.CatchUp(caughtUp)
	s.mark(history.PhaseEnd)
	return s.recorder.Flush()
}
