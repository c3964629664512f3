package run

import (
	"context"
	"fmt"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Settle waits until all objects have converged, and the controllers under test have then written
// nothing for a while. The scenario's field settle.quiet says how long. In a run with a baseline, the
// objects must first become the same as in runs without faults. Heal all faults before the call.
// Settle begins the phases settle, quiet and end.
//
// If the time limit settle.within passes first, Settle returns nil too, because the checks decide
// whether that is a violation.
func (s *Session) Settle(ctx context.Context) error {
	if err := s.checkPhase("Settle", sessionChaos); err != nil {
		return err
	}
	s.beginPhase(history.PhaseSettle)
	healed := ""
	if len(s.Scenario.Faults) > 0 {
		healed = "all faults healed; "
	}
	s.progress("%swaiting up to %s for convergence", healed, s.Scenario.Settle.Within)
	start := s.Clock.Now()
	// Convergence can only be determined after the history contains the last user operations.
	// Commits that are missing here may still arrive. For commits that are missing at the end,
	// Settle records a gap, which marks the history as incomplete.
	if missing := s.catchUp(ctx); ctx.Err() != nil {
		return ctx.Err()
	} else if missing != nil {
		s.progress("the history does not contain all changes in etcd yet: %v", missing)
	}
	bounded, cancel := s.monitor.within(ctx, s.Scenario.Settle.Within)
	defer cancel()
	quiet, late := false, false
	for !quiet && !late && s.monitor.waitSettled(bounded) {
		s.beginPhase(history.PhaseQuiet)
		quiet = s.monitor.waitQuiet(ctx, s.Clock, s.Scenario.Settle.Quiet)
		late = !quiet && bounded.Err() != nil
	}
	if late || !quiet && s.monitor.differsFromBaseline() {
		// settle.within has passed. Begin the phase quiet anyway: the checks report writes in this
		// phase.
		s.beginPhase(history.PhaseQuiet)
		s.sleep(ctx, s.Scenario.Settle.Quiet, nil)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	result := "settled"
	if !quiet {
		result = "not settled"
	}
	s.progress("%s after %.1f s", result, s.Clock.Since(start).Seconds())
	if missing := s.catchUp(ctx); ctx.Err() != nil {
		return ctx.Err() // the run was aborted, so commits may be missing for that reason
	} else if missing != nil {
		s.Environment.Recorder.Append(history.Record{Gap: &history.Gap{Source: "commits", Detail: "missing at the end of the run: " + strings.ReplaceAll(missing.Error(), "\n", "; ")}})
	}
	s.beginPhase(history.PhaseEnd)
	return s.Environment.Recorder.Flush()
}

// Converged waits until all objects have converged, but at most for the time settle.within of the
// scenario. Faults may be active. After this time, the error says which objects have not converged.
func (s *Session) Converged(ctx context.Context) error {
	if err := s.checkPhase("Converged", sessionChaos); err != nil {
		return err
	}
	bounded, cancel := s.monitor.within(ctx, s.Scenario.Settle.Within)
	defer cancel()
	if missing := s.catchUp(ctx); missing != nil {
		return missing
	}
	if s.monitor.waitConverged(bounded) {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return fmt.Errorf("the objects did not converge within %s: %s", s.Scenario.Settle.Within, strings.Join(s.monitor.settled.Pending(), "; "))
}
