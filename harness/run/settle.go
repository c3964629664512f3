package run

import (
	"context"
	"errors"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// settle waits until the subject has converged and has then written nothing for
// settle.quiet. It records the phases and the end of the observation. If the time limit
// passes first, settle returns nil, because the checks decide whether that is a
// violation.
func (e *testEnvironment) settle(ctx context.Context) error {
	e.beginPhase(history.PhaseSettle)
	e.progress("all faults healed; waiting up to %s for convergence", e.Scenario.Settle.Within)
	start := e.Clock.Now()
	// The last user operations must be recorded before convergence means anything.
	// Missing commits may still arrive; only those missing at the end are a gap.
	if missing := e.catchUp(ctx); ctx.Err() != nil {
		return ctx.Err()
	} else if missing != nil {
		e.progress("not all commits are recorded yet: %v", missing)
	}
	bounded, cancel := context.WithTimeout(ctx, e.Scenario.Settle.Within)
	defer cancel()
	for quiet := false; !quiet && e.monitor.waitConverged(bounded); {
		e.beginPhase(history.PhaseQuiet)
		quiet = e.monitor.waitQuiet(ctx, e.Clock, e.Scenario.Settle.Quiet)
		if !quiet && bounded.Err() != nil {
			// The time limit has passed. The checks report any further write.
			e.beginPhase(history.PhaseQuiet)
			e.sleep(ctx, e.Scenario.Settle.Quiet, nil)
			break
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	e.progress("settled after %.1f s", e.Clock.Since(start).Seconds())
	if missing := e.catchUp(ctx); ctx.Err() != nil {
		return ctx.Err() // the catch-up was aborted, so missing commits prove nothing
	} else if missing != nil {
		e.recorder.Append(history.Record{Gap: &history.Gap{Source: "commits", Detail: "missing at the end of the run: " + strings.ReplaceAll(missing.Error(), "\n", "; ")}})
	}
	e.beginPhase(history.PhaseEnd)
	return e.recorder.Flush()
}

// catchUp waits until the history contains everything committed so far. When
// catchUpTimeout is over, it returns an error that says what is missing. If the recorder
// has failed, catchUp returns its error, and supervise ends the run.
func (e *testEnvironment) catchUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, catchUpTimeout)
	defer cancel()
	return errors.Join(e.observer.CatchUp(ctx), e.recorder.Flush())
}
