package run

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// monitor determines from the history, while it is recorded, when the next phase of the run can
// begin. It affects the duration of a run, never the verdict.
type monitor struct {
	settled *check.Settled
	// ready reports whether a replica of the subject has opened all watches that the
	// controllers need.
	ready func() bool

	mu      sync.Mutex
	changed chan struct{} // closed and replaced at every request, response, process or commit record that observe uses
	writes  int           // number of requests of the subject for which IsWrite is true
	// stalls contains for how long gauntlet (the key "") and each replica got no CPU time.
	stalls map[string]time.Duration
}

// newMonitor returns the monitor of a run in which the given controllers are under test.
func newMonitor(controllers ...kube.Controller) *monitor {
	return &monitor{settled: check.NewSettled(controllers...), ready: func() bool { return true }, changed: make(chan struct{}), stalls: map[string]time.Duration{}}
}

// observe updates the monitor from the next record of the history, and wakes the callers of
// waitUntil.
func (m *monitor) observe(r *history.Record) {
	m.settled.Observe(r)
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case r.Stall != nil:
		m.stalls[r.Stall.Process] += r.Stall.Duration
		return
	case r.Request != nil && r.Request.IsWrite():
		m.writes++
	case r.Response == nil && r.Process == nil && r.Commit == nil:
		return
	}
	close(m.changed)
	m.changed = make(chan struct{})
}

// stalled returns the longest total stall of a replica since the history began. It includes the
// stalls of gauntlet.
func (m *monitor) stalled() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	longest := m.stalls[""]
	for name, stalled := range m.stalls {
		if name != "" {
			longest = max(longest, m.stalls[""]+stalled)
		}
	}
	return longest
}

// within returns a context that ends after the given duration. The stalls of gauntlet and of the
// subject do not count, but the context ends at the latest after twice the duration.
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

// waitUntil waits until done returns true. It returns false if ctx ends first. It calls done
// after each record that changes the state of the monitor. It also calls done every 100 ms,
// because the result of done may depend on the time.
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
		case <-ticker.C:
		case <-ctx.Done():
			return false
		}
	}
}

// waitConverged waits until the subject has opened its watches and all observed objects have
// converged. It returns false if ctx ends first.
func (m *monitor) waitConverged(ctx context.Context) bool {
	return m.waitUntil(ctx, func() bool { return m.ready() && len(m.settled.Pending()) == 0 })
}

// waitQuiet waits until the subject has written nothing for the duration d, and returns true.
// It returns false as soon as the subject writes, an observed object is no longer converged, or
// ctx ends.
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
