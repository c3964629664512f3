package check

import (
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// staleEndpoints finds Services whose work queue key a process has dropped because its cache of
// Endpoints lagged. It recognizes the known upstream issue stale-endpoints.
//
// Upstream does not sync a Service while its cache still has the version of the Endpoints that its
// last update replaced. Each such sync fails without a request. After maxRetries failures, upstream
// drops the key. The event that ends the lag does not enqueue the key.
type staleEndpoints struct {
	// enqueued contains the sequence number of the record that last enqueued the key of a Service, for
	// each Service whose Endpoints the process is writing.
	enqueued map[workQueueKey]int64
	// updates contains the last update of each key that the cache lacks, and the updates for which
	// the process has dropped the key.
	updates map[workQueueKey]*staleUpdate
}

// staleUpdate counts the syncs of a Service that fail because the cache lacks the process's last
// update of the Endpoints. The history does not contain these syncs. staleUpdate computes them from
// the events that enqueue the key and from upstream's back-off.
type staleUpdate struct {
	version  history.Version // resourceVersion of the update
	failures int             // number of failed syncs since the key was last dropped
	retryAt  time.Duration   // when the next retry is due, on the clock of the process; 0 if none is due
	dropped  bool            // true if the process may have dropped the key while the cache lacked the update
}

func newStaleEndpoints() *staleEndpoints {
	return &staleEndpoints{enqueued: map[workQueueKey]int64{}, updates: map[workQueueKey]*staleUpdate{}}
}

// observe adds the updates of Endpoints that the cache of their process does not contain yet. For
// each list and watch event, it counts the syncs that must have failed until then. It removes an
// update when the process sends another request for the key, which it does only in a sync that does
// not fail.
func (stale *staleEndpoints) observe(m *Model, r *history.Record) {
	if processStarts(r) {
		dropEndedProcesses(stale.enqueued)
		dropEndedProcesses(stale.updates)
		return
	}
	if m.sent != nil && m.sent.serviceState != nil {
		delete(stale.updates, m.sent.queueKey)
	}
	if answered := m.answered; answered != nil && answered.serviceState != nil {
		if answered.update != nil && answered.response.OK() {
			stale.add(m, answered)
		}
		delete(stale.enqueued, answered.queueKey)
	}
	if _, of := eventOf(r); of == objects.EndpointsResource {
		stale.deliver(m)
	}
	for _, event := range m.events {
		state := event.process.serviceStates[event.service]
		if stale.updates[event.workQueueKey] == nil && (state == nil || state.callsInFlight == 0) {
			continue
		}
		if enqueues, _ := enqueuesService(m, r, event.workQueueKey); enqueues {
			stale.enqueue(m, event.workQueueKey)
		}
	}
}

// add adds an update of Endpoints that the cache lacks. If an event has enqueued the key since the
// request, the process syncs the Service again at once, and this sync fails.
func (stale *staleEndpoints) add(m *Model, updated *answeredCall) {
	o := updated.response.Object
	if o == nil || o.Version <= updated.process.view.reachedVersion[objects.EndpointsResource] {
		return
	}
	update := &staleUpdate{version: o.Version}
	stale.updates[updated.queueKey] = update
	if stale.enqueued[updated.queueKey] > updated.seq {
		update.fail(m.processTime)
	}
}

// deliver removes the updates that the current list or watch event has delivered. It keeps an
// update if the process has dropped the key before, or if the key waits for a retry.
func (stale *staleEndpoints) deliver(m *Model) {
	for key, update := range stale.updates {
		if key.process != m.delivered || key.process.view.reachedVersion[objects.EndpointsResource] < update.version {
			continue
		}
		if update.retryUntil(m.processTime); !update.dropped && update.retryAt == 0 {
			delete(stale.updates, key)
		}
	}
}

// enqueue records that an event enqueued a key. The sync fails if the cache still lacks the update.
func (stale *staleEndpoints) enqueue(m *Model, key workQueueKey) {
	stale.enqueued[key] = m.seq
	update := stale.updates[key]
	if update == nil {
		return
	}
	if key.process.view.reachedVersion[objects.EndpointsResource] >= update.version {
		delete(stale.updates, key)
		return
	}
	update.retryUntil(m.processTime)
	update.fail(m.processTime)
}

// retryUntil counts the retries that are due at the given time or earlier.
func (update *staleUpdate) retryUntil(at time.Duration) {
	for update.retryAt > 0 && update.retryAt <= at {
		due := update.retryAt
		update.retryAt = 0
		update.fail(due)
	}
}

// fail counts a sync that fails at the given time. After maxRetries failures, upstream starts to
// count again and adds no retry. If a later event enqueues the key, or an earlier retry still
// follows, the process may sync the Service after all. The history does not show this, because a
// burst of events causes fewer syncs than events. The work queue keeps the earlier of two retries of
// one key.
func (update *staleUpdate) fail(at time.Duration) {
	update.failures++
	if update.failures == maxRetries {
		update.failures, update.dropped = 0, true
		return
	}
	if next := at + backOffAfter(update.failures); update.retryAt == 0 || next < update.retryAt {
		update.retryAt = next
	}
}

// knownIssue returns the known upstream issue for which a process does not sync a Service. The process
// has dropped the Service's key, or the key waits for its next retry. The result is nil if there is
// none. The method ignores processes that are paused or cannot hold the lease.
func (stale *staleEndpoints) knownIssue(m *Model, service workQueueKey) *KnownIssue {
	for key := range m.activeKeys(service) {
		update := stale.updates[key]
		if update == nil {
			continue
		}
		now := m.clockOf(key.process.name)
		if key.process.view.reachedVersion[objects.EndpointsResource] < update.version {
			update.retryUntil(now)
		}
		switch {
		case update.dropped:
			return staleEndpointsCache
		case update.retryAt > now:
			return longBackOff
		}
	}
	return nil
}
