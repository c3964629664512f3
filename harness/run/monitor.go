package run

import (
	"context"
	"maps"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// monitor watches the records of the history to determine when the next phase of the run can begin.
// It affects only how long a run takes. The verdict does not depend on it.
type monitor struct {
	settled  *check.Settled
	endState *check.EndState
	// ready reports whether the leading replica has watched all resources that its controllers need.
	// watching reports whether all these watches are open.
	ready, watching func() bool

	mu      sync.Mutex
	changed chan struct{} // changed is closed and replaced after each record that can change the condition for which waitUntil waits
	writes  int           // number of write requests of the controllers under test
	// inFlight contains the name of the replica that sent each write without a response, by request
	// ID. While there is such a write, the objects have not converged: it may change one of them.
	inFlight map[uint64]string
	stalls   stallTotals
}

// newMonitor returns a monitor for a run with the given controllers under test. Until the caller
// sets the field ready, the monitor assumes that the replicas are ready.
func newMonitor(controllers ...kube.Controller) *monitor {
	always := func() bool { return true }
	return &monitor{settled: check.NewSettled(controllers...), endState: check.NewEndState(nil, 0), ready: always, watching: always, changed: make(chan struct{}), inFlight: map[uint64]string{}, stalls: stallTotals{}}
}

// observe updates the monitor from the next record of the history. If the record can change the
// condition for which waitUntil waits, observe makes waitUntil evaluate the condition again.
func (m *monitor) observe(r *history.Record) {
	m.settled.Observe(r)
	m.endState.Observe(r)
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case r.Stall != nil:
		m.stalls.add(r.Stall)
		return
	case r.Request != nil && r.Request.IsWrite():
		m.writes++
		m.inFlight[r.Request.ID] = r.Request.Subject
	case r.Response != nil:
		delete(m.inFlight, r.Response.ID)
	case r.Process != nil:
		if e := r.Process.Event; e != history.ProcessPaused && e != history.ProcessResumed { // a process that began or ended awaits no response
			maps.DeleteFunc(m.inFlight, func(_ uint64, replica string) bool { return replica == r.Process.Name })
		}
	case r.Commit == nil:
		return
	}
	close(m.changed)
	m.changed = make(chan struct{})
}

// stalled returns for how long the run got no CPU since the history began. The method within extends
// time limits by the result.
func (m *monitor) stalled() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stalls.longest()
}

// stallTotals contains the total time for which each replica got no CPU, by replica name. The name
// "" means gauntlet itself.
type stallTotals map[string]time.Duration

func (totals stallTotals) add(s *history.Stall) { totals[s.Process] += s.Duration }

// longest returns the total of gauntlet itself, plus the total of the replica that stalled longest.
func (totals stallTotals) longest() time.Duration {
	longest := totals[""]
	for name, stalled := range totals {
		if name != "" {
			longest = max(longest, totals[""]+stalled)
		}
	}
	return longest
}

// within returns a context that ends after the given duration. Stalls are times in which gauntlet
// or the controllers under test got no CPU. They extend the duration, but at most to twice its
// value.
func (m *monitor) within(ctx context.Context, duration time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, 2*duration)
	before, start := m.stalled(), time.Now()
	go func() {
		defer cancel()
		for left := duration; left > 0; left = duration + m.stalled() - before - time.Since(start) {
			timer := time.NewTimer(left)
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
				return
			}
		}
	}()
	return ctx, cancel
}

// waitUntil waits until the callback done returns true, and then returns true. If ctx ends first,
// waitUntil returns false. It calls the callback within 10 ms after a record that can change the
// callback's result. It also calls the callback every 100 ms, because the result may depend on the
// time.
func (m *monitor) waitUntil(ctx context.Context, done func() bool) bool {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		m.mu.Lock()
		changed := m.changed
		m.mu.Unlock()
		if done() {
			return true
		}
		select {
		case <-changed:
			select { // wait 10 ms, because done takes long: one call covers several records
			case <-time.After(10 * time.Millisecond):
			case <-ctx.Done():
				return false
			}
		case <-ticker.C:
		case <-ctx.Done():
			return false
		}
	}
}

// converged reports whether the controllers under test have opened their watches and all recorded
// objects have converged.
func (m *monitor) converged() bool { return m.ready() && len(m.settled.Pending()) == 0 }

// waitConverged waits until the controllers under test have opened their watches and all recorded
// objects have converged. It then returns true. If ctx ends first, waitConverged returns false.
func (m *monitor) waitConverged(ctx context.Context) bool {
	return m.waitUntil(ctx, m.converged)
}

// waitSettled waits until all recorded objects have converged and no write is in flight, and then
// returns true. In a run with a baseline, the objects must also be the same as in runs without
// faults. If ctx ends first, waitSettled returns false.
func (m *monitor) waitSettled(ctx context.Context) bool {
	return m.waitUntil(ctx, func() bool { return m.allAnswered() && m.converged() && m.endState.Reached() })
}

// allAnswered reports whether each write of the controllers under test has a response.
func (m *monitor) allAnswered() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.inFlight) == 0
}

// differsFromBaseline reports whether all recorded objects have converged, but are not the same as
// in runs without faults. In a run without a baseline, it returns false.
func (m *monitor) differsFromBaseline() bool {
	return m.converged() && !m.endState.Reached()
}

// waitStill waits until the controllers under test have sent no write for the duration d. In this time,
// their watches must be open, and the callback busy must return false. It returns early if ctx ends.
func (m *monitor) waitStill(ctx context.Context, clock clock.PassiveClock, d time.Duration, busy func() bool) {
	before, start := -1, clock.Now()
	m.waitUntil(ctx, func() bool {
		m.mu.Lock()
		writes := m.writes
		m.mu.Unlock()
		if writes != before || !m.watching() || busy() {
			before, start = writes, clock.Now()
		}
		return clock.Since(start) >= d
	})
}

// waitQuiet waits for the duration d. It returns true if the controllers under test (the subject)
// have written nothing in this time. It returns false as soon as the subject writes, a recorded
// object is no longer converged, or ctx ends.
func (m *monitor) waitQuiet(ctx context.Context, clock clock.PassiveClock, d time.Duration) bool {
	m.mu.Lock()
	before, start := m.writes, clock.Now()
	m.mu.Unlock()
	disturbed := false
	m.waitUntil(ctx, func() bool {
		m.mu.Lock()
		disturbed = m.writes > before
		m.mu.Unlock()
		disturbed = disturbed || len(m.settled.Pending()) > 0
		return disturbed || clock.Since(start) >= d
	})
	return !disturbed && ctx.Err() == nil
}
