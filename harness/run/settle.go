package run

import (
	"context"
	"errors"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// settle waits, with every fault healed, until the subject has converged and
// then written nothing for as long as the scenario demands, and records the end.
// That the bound passes first is for the checks to judge, no error.
func (s *testEnvironment) settle(ctx context.Context) error {
	s.beginPhase(history.PhaseSettle)
	s.progress("all faults healed, up to %s to converge", s.Scenario.Settle.Within)
	begun := s.Clock.Now()
	// What users did last is to be seen before anything is said of it. What is not
	// seen yet may still come: only what has not by the end is a gap.
	if missing := s.catchUp(ctx); ctx.Err() != nil {
		return ctx.Err()
	} else if missing != nil {
		s.progress("not everything is seen yet: %v", missing)
	}
	bounded, cancel := context.WithTimeout(ctx, s.Scenario.Settle.Within)
	defer cancel()
	for quiet := false; !quiet && s.monitor.waitConverged(bounded); {
		s.beginPhase(history.PhaseQuiet)
		quiet = s.monitor.waitQuiet(ctx, s.Clock, s.Scenario.Settle.Quiet)
		if !quiet && bounded.Err() != nil {
			// It has had its time. What it writes from here on is judged.
			s.beginPhase(history.PhaseQuiet)
			s.sleep(ctx, s.Scenario.Settle.Quiet, nil)
			break
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	s.progress("settled after %.1f s", s.Clock.Since(begun).Seconds())
	if missing := s.catchUp(ctx); ctx.Err() != nil {
		return ctx.Err() // it was broken off, and says nothing of the witness
	} else if missing != nil {
		s.recorder.Append(history.Record{Gap: &history.Gap{Source: "commits", Detail: "at the end: " + strings.ReplaceAll(missing.Error(), "\n", "; ")}})
	}
	s.beginPhase(history.PhaseEnd)
	return s.recorder.Flush()
}

// catchUp returns when the history, and the monitor, have all that is there by now,
// or with what is missing when its time is up. A recorder that fails ends the run by
// itself.
func (s *testEnvironment) catchUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, catchUpTimeout)
	defer cancel()
	return errors.Join(s.observer.CatchUp(ctx), s.recorder.Flush())
}
