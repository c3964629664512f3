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

// requiredWatches is what a replica must watch before the chaos begins, and before the
// subject can be said to have settled: with less, it is still starting.
var requiredWatches = []string{"pods", "replicationcontrollers", "replicasets.apps", "deployments.apps", "services", "endpoints"}

// monitor follows the history while it is written, and tells the run when to go
// on. It judges nothing: its opinion decides how long a run takes, never what its
// verdict is.
type monitor struct {
	settled *check.Settled
	// withoutProxy: the run does without the proxy, so that of the subject nothing is seen.
	withoutProxy bool

	mu      sync.Mutex
	changed chan struct{} // closed, and replaced, with every record that matters
	// pendingWatches is the requests for one that are not yet answered; watching, what each
	// replica watches, by its name; holders, the replicas by the identity under
	// which each takes part in elections. All are of lives that go on.
	pendingWatches   map[uint64]watchRequest
	watchedResources map[string]map[string]bool
	holders          map[string]string
	writes           int // of the subject, but for leases and events
}

// watchRequest is a watch that a replica has asked for.
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

// observe takes in the next record.
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

// observeLease learns from what a replica writes into a lease who it is there.
func (m *monitor) observeLease(r *history.Request) {
	if r.Object == nil || (r.Verb != "create" && r.Verb != "update") {
		return
	}
	var lease struct {
		Spec struct {
			HolderIdentity string `json:"holderIdentity"`
		} `json:"spec"`
	}
	// A lease that cannot be read makes nobody a holder.
	if err := json.Unmarshal(r.Object.Body, &lease); err == nil && lease.Spec.HolderIdentity != "" {
		m.holders[lease.Spec.HolderIdentity] = r.Subject
	}
}

// observeProcess forgets what went with a life that is over.
func (m *monitor) observeProcess(p *history.Process) {
	switch p.Event {
	case history.ProcessStarted, history.ProcessPaused, history.ProcessResumed:
		return
	}
	delete(m.watchedResources, p.Name)
	maps.DeleteFunc(m.pendingWatches, func(_ uint64, w watchRequest) bool { return w.replica == p.Name })
	maps.DeleteFunc(m.holders, func(_, replica string) bool { return replica == p.Name })
}

// holder names the replica that takes part in elections under an identity, ""
// if none that lives is known to.
func (m *monitor) holder(identity string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.holders[identity]
}

// waitUntil returns true once done does, false when ctx ends first. It asks again
// after every record that matters, and every so often, as time alone may do.
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

// waitWatching returns when a replica watches what it must.
func (m *monitor) waitWatching(ctx context.Context) error {
	if m.waitUntil(ctx, func() bool { return len(m.unwatched()) == 0 }) {
		return nil
	}
	return fmt.Errorf("the subject leads but does not watch %s", strings.Join(m.unwatched(), ", "))
}

// unwatched is what the replica that watches most does not watch: only one that
// leads watches at all.
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

// waitConverged returns true when a replica is at work and everything has
// converged, false when ctx ends first.
func (m *monitor) waitConverged(ctx context.Context) bool {
	return m.waitUntil(ctx, func() bool { return len(m.unwatched()) == 0 && len(m.settled.Pending()) == 0 })
}

// waitQuiet returns true when the subject has written nothing for d, and false
// at its first write, when something is pending again, or when ctx ends.
func (m *monitor) waitQuiet(ctx context.Context, clock clock.PassiveClock, d time.Duration) bool {
	m.mu.Lock()
	before, begun := m.writes, clock.Now()
	m.mu.Unlock()
	stirred := false
	m.waitUntil(ctx, func() bool {
		m.mu.Lock()
		stirred = m.writes > before
		m.mu.Unlock()
		stirred = stirred || len(m.settled.Pending()) > 0
		return stirred || clock.Since(begun) >= d
	})
	return !stirred && ctx.Err() == nil
}
