package run

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// watched is what a replica must watch before the chaos begins: with less, what
// happens first would happen to a subject that is still starting.
var watched = []string{"pods", "replicationcontrollers", "replicasets.apps", "deployments.apps", "services", "endpoints"}

// monitor follows the history while it is written, and tells the run when to go
// on. It judges nothing: its opinion decides how long a run takes, never what its
// verdict is.
type monitor struct {
	settled *check.Settled

	mu       sync.Mutex
	changed  chan struct{} // closed, and replaced, with every record that matters
	watches  map[uint64]string
	watching map[string]bool
	writes   int // of the subject, but for leases and events
}

func newMonitor() *monitor {
	return &monitor{
		settled:  check.NewSettled(),
		changed:  make(chan struct{}),
		watches:  map[uint64]string{},
		watching: map[string]bool{},
	}
}

// follow takes in the next record.
func (m *monitor) follow(r *history.Record) {
	m.settled.Observe(r)
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case r.Request != nil && r.Request.Verb == "watch":
		m.watches[r.Request.ID] = r.Request.Resource
		return
	case r.Request != nil && check.IsWrite(r.Request):
		m.writes++
	case r.Response != nil:
		resource, ok := m.watches[r.Response.ID]
		if !ok {
			return
		}
		delete(m.watches, r.Response.ID)
		if r.Response.OK() {
			m.watching[resource] = true
		}
	case r.Truth == nil:
		return
	}
	close(m.changed)
	m.changed = make(chan struct{})
}

// waitFor returns true once done does, false when ctx ends first. It asks again
// after every record that matters, and every so often, as time alone may do.
func (m *monitor) waitFor(ctx context.Context, done func() bool) bool {
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

// waitWatching returns when the subject watches what it must.
func (m *monitor) waitWatching(ctx context.Context) error {
	var missing []string
	all := m.waitFor(ctx, func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		missing = nil
		for _, resource := range watched {
			if !m.watching[resource] {
				missing = append(missing, resource)
			}
		}
		return len(missing) == 0
	})
	if !all {
		return fmt.Errorf("the subject leads but does not watch %s", strings.Join(missing, ", "))
	}
	return nil
}

// waitConverged returns true when everything has converged, false when ctx ends first.
func (m *monitor) waitConverged(ctx context.Context) bool {
	return m.waitFor(ctx, func() bool { return len(m.settled.Pending()) == 0 })
}

// waitQuiet returns true when the subject has written nothing for d, and false
// at its first write, when something is pending again, or when ctx ends.
func (m *monitor) waitQuiet(ctx context.Context, clock clock.PassiveClock, d time.Duration) bool {
	m.mu.Lock()
	before, begun := m.writes, clock.Now()
	m.mu.Unlock()
	stirred := false
	m.waitFor(ctx, func() bool {
		m.mu.Lock()
		stirred = m.writes > before
		m.mu.Unlock()
		stirred = stirred || len(m.settled.Pending()) > 0
		return stirred || clock.Since(begun) >= d
	})
	return !stirred && ctx.Err() == nil
}
