package check

import (
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// staleEndpoints finds Services whose work queue key a process has dropped because its cache of
// Endpoints lagged. It recognizes the known upstream issue stale-endpoints.
//
// Upstream does not sync a Service while its cache lacks its own last write of the Endpoints. Each
// such sync fails without a request. After maxRetries failures, upstream drops the key. The event
// that ends the lag does not enqueue the key. The map contains the last write of each key that the
// cache lacks, and the writes for which the process has dropped the key.
type staleEndpoints map[workQueueKey]*staleWrite

// staleWrite counts the syncs of a Service that fail because the cache lacks the process's last
// write of the Endpoints. The history does not contain these syncs. staleWrite computes them from
// the events that enqueue the key and from upstream's back-off.
type staleWrite struct {
	version  history.Version // resourceVersion of the write
	failures int             // number of failed syncs since the key was last dropped
	retryAt  time.Duration   // when the next retry is due, on the clock of the process; 0 if none is due
	dropped  bool            // true if the process has dropped the key, and no event has enqueued it since
}

// observe adds the writes of Endpoints that the cache of their process does not contain yet. For
// each list and watch event, it counts the syncs that must have failed until then. It removes a
// write when the cache contains it, or, if the process has dropped the key, when the next event
// enqueues the key.
func (stale staleEndpoints) observe(m *Model, r *history.Record) {
	if processStarts(r) {
		dropEndedProcesses(stale)
		return
	}
	if written := m.answered; written != nil && written.serviceState != nil && written.response.OK() {
		delete(stale, written.queueKey)
		if o := written.response.Object; o != nil && o.Version > written.process.view.reachedVersion[objects.EndpointsResource] {
			stale[written.queueKey] = &staleWrite{version: o.Version}
		}
	}
	if _, of := eventOf(r); of == objects.EndpointsResource {
		stale.deliver(m)
	}
	for _, event := range m.events {
		write := stale[event.workQueueKey]
		if write == nil {
			continue
		}
		if enqueues, _ := enqueuesService(m, r, event.workQueueKey); enqueues {
			stale.enqueue(m, event.workQueueKey, write)
		}
	}
}

// deliver removes the writes that the current list or watch event has delivered. It keeps a write
// if the process has dropped the key before.
func (stale staleEndpoints) deliver(m *Model) {
	for key, write := range stale {
		if key.process != m.delivered || key.process.view.reachedVersion[objects.EndpointsResource] < write.version {
			continue
		}
		if write.retryUntil(m.processTime); !write.dropped {
			delete(stale, key) // the next retry succeeds
		}
	}
}

// enqueue records that an event enqueued a key. The sync fails if the cache still lacks the write.
func (stale staleEndpoints) enqueue(m *Model, key workQueueKey, write *staleWrite) {
	if key.process.view.reachedVersion[objects.EndpointsResource] >= write.version {
		delete(stale, key)
		return
	}
	write.retryUntil(m.processTime)
	write.dropped = false
	write.fail(m.processTime)
}

// retryUntil counts the retries that are due at the given time or earlier.
func (write *staleWrite) retryUntil(at time.Duration) {
	for write.retryAt > 0 && write.retryAt <= at {
		due := write.retryAt
		write.retryAt = 0
		write.fail(due)
	}
}

// fail counts a sync that fails at the given time. The work queue keeps the earlier of two
// retries of one key.
func (write *staleWrite) fail(at time.Duration) {
	write.failures++
	if write.failures == maxRetries {
		*write = staleWrite{version: write.version, dropped: true}
		return
	}
	if next := at + backOffAfter(write.failures); write.retryAt == 0 || next < write.retryAt {
		write.retryAt = next
	}
}

// explains reports whether a process does not sync a Service because it has dropped the Service's
// key. The method ignores processes that are paused or cannot hold the lease.
func (stale staleEndpoints) explains(m *Model, service workQueueKey) bool {
	for key := range m.activeKeys(service) {
		write := stale[key]
		if write == nil {
			continue
		}
		if key.process.view.reachedVersion[objects.EndpointsResource] < write.version {
			write.retryUntil(m.clockOf(key.process.name))
		}
		if write.dropped {
			return true
		}
	}
	return false
}
