package run

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// requiredWatches are the resources that the leader must watch before the chaos phase
// and at convergence. A leader with fewer watches is still starting.
var requiredWatches = []string{"pods", "replicationcontrollers", "replicasets.apps", "deployments.apps", "services", "endpoints"}

// monitor observes the history while it is recorded, so that the run knows when the
// next phase can begin. It affects the duration of a run, never the verdict.
type monitor struct {
	settled *check.Settled
	// withoutProxy is true if the subject connects directly, so that the history has
	// none of its requests.
	withoutProxy bool

	mu      sync.Mutex
	changed chan struct{} // closed and replaced at every relevant record
	// pendingWatches are the watch requests without a response, by request ID.
	// watchedResources are the resources that each replica watches. holders maps the
	// leader-election identity of a replica to its name. All three contain only running
	// replicas.
	pendingWatches   map[uint64]watchRequest
	watchedResources map[string]map[string]bool
	holders          map[string]string
	writes           int // writes of the subject, except to leases and events
}

// watchRequest is a watch request of a replica.
type watchRequest struct{ replica, resource string }

func newMonitor() *monitor {
	return &monitor{
		settled:          check.NewSettled(),
		changed:          make(chan struct{}),
		pendingWatches:   map[uint64]watchRequest{},
		watchedResources: map[string]map[string]bool{},
		holders:          map[string]string{},
	}
}

// observe updates the state of the monitor from the next record, and notifies waiting
// callers.
func (m *monitor) observe(r *history.Record) {
	m.settled.Observe(r)
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case r.Request != nil && r.Request.Verb == "watch":
		m.pendingWatches[r.Request.ID] = watchRequest{r.Request.Subject, r.Request.Resource}
		return
	case r.Request != nil && r.Request.Resource == leaseResource:
		m.observeLease(r.Request)
		return
	case r.Request != nil && r.Request.IsWrite():
		m.writes++
	case r.Response != nil:
		request, ok := m.pendingWatches[r.Response.ID]
		if !ok {
			return
		}
		delete(m.pendingWatches, r.Response.ID)
		if !r.Response.OK() {
			return
		}
		if m.watchedResources[request.replica] == nil {
			m.watchedResources[request.replica] = map[string]bool{}
		}
		m.watchedResources[request.replica][request.resource] = true
	case r.Process != nil:
		m.observeProcess(r.Process)
	case r.Commit == nil:
		return
	}
	close(m.changed)
	m.changed = make(chan struct{})
}

const leaseResource = "leases.coordination.k8s.io"

// observeLease learns the leader-election identity of a replica from its writes to the
// lease.
func (m *monitor) observeLease(r *history.Request) {
	if r.Object == nil || (r.Verb != "create" && r.Verb != "update") {
		return
	}
	var lease struct {
		Spec struct {
			HolderIdentity string `json:"holderIdentity"`
		} `json:"spec"`
	}
	// A lease that cannot be decoded names no holder.
	if err := json.Unmarshal(r.Object.Body, &lease); err == nil && lease.Spec.HolderIdentity != "" {
		m.holders[lease.Spec.HolderIdentity] = r.Subject
	}
}

// observeProcess removes the state of a replica that has ended.
func (m *monitor) observeProcess(p *history.Process) {
	switch p.Event {
	case history.ProcessStarted, history.ProcessPaused, history.ProcessResumed:
		return
	}
	delete(m.watchedResources, p.Name)
	maps.DeleteFunc(m.pendingWatches, func(_ uint64, w watchRequest) bool { return w.replica == p.Name })
	maps.DeleteFunc(m.holders, func(_, replica string) bool { return replica == p.Name })
}

// holder returns the running replica that uses a leader-election identity, "" if there is
// none.
func (m *monitor) holder(identity string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.holders[identity]
}

// waitUntil waits until done returns true. It returns false if ctx ends first. It calls
// done after every relevant record and every 100 ms, because done may depend on the
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
		case <-ticker.C:
		case <-ctx.Done():
			return false
		}
	}
}

// waitWatching waits until a replica watches all required resources.
func (m *monitor) waitWatching(ctx context.Context) error {
	if m.waitUntil(ctx, func() bool { return len(m.unwatched()) == 0 }) {
		return nil
	}
	return fmt.Errorf("the subject holds the lease but does not watch %s", strings.Join(m.unwatched(), ", "))
}

// unwatched returns the required resources that the leader does not watch. The leader is the
// replica with the most watches; the other replicas have none.
func (m *monitor) unwatched() []string {
	if m.withoutProxy {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	least := requiredWatches
	for _, watching := range m.watchedResources {
		var missing []string
		for _, resource := range requiredWatches {
			if !watching[resource] {
				missing = append(missing, resource)
			}
		}
		if len(missing) < len(least) {
			least = missing
		}
	}
	return least
}

// waitConverged waits until a leader is running and all observed objects have
// converged. It returns false if ctx ends first.
func (m *monitor) waitConverged(ctx context.Context) bool {
	return m.waitUntil(ctx, func() bool { return len(m.unwatched()) == 0 && len(m.settled.Pending()) == 0 })
}

// waitQuiet returns true when the subject has written nothing for the duration d. It
// returns false at a write of the subject, when an object is no longer converged, or
// when ctx ends.
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
