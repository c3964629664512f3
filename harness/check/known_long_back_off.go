package check

import (
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// The shortest and the longest delay before upstream's work queue retries a key (contract
// ReplicaSet 17).
const (
	firstRetry = 5 * time.Millisecond // after the first failure; each further failure doubles the delay
	lastRetry  = 1000 * time.Second   // the longest delay
)

// backingOffKeys finds ReplicaSets and ReplicationControllers whose key waits for its next retry
// in a work queue. It recognizes the known upstream issue long-back-off.
//
// It counts how often each request has failed in a row. A key no longer waits if an event has
// enqueued it since the last failed request.
//
// Since v1.36, a sync of a ReplicaSet fails if the cache lacks the last status that the process wrote. No
// request shows this failure, but it doubles the back-off, too. One such failure may follow each write.
type backingOffKeys struct{ *failedAttempts }

// newBackingOffKeys returns backingOffKeys that have counted no failures yet. They count the
// failures of requests for ReplicaSets and ReplicationControllers.
func newBackingOffKeys() backingOffKeys {
	keys := backingOffKeys{newFailedAttempts(0, func(c *call) bool { return c.ownerState != nil })}
	keys.silent = map[workQueueKey]int{}
	return keys
}

// observe counts failed requests for each work queue key. It also notes when an event enqueues a
// key, because the key then no longer waits for its retry.
func (keys backingOffKeys) observe(m *Model, r *history.Record) {
	for _, event := range m.events {
		if keys.byKey[event.workQueueKey] != nil && enqueuesOwner(m, r, event.workQueueKey) {
			keys.recordEvent(m, event.workQueueKey)
		}
	}
	keys.failedAttempts.observe(m, r)
	if processStarts(r) {
		dropEndedProcesses(keys.silent)
	}
	switch answered := m.answered; {
	case answered == nil || answered.ownerState == nil:
	case keys.byKey[answered.queueKey] == nil:
		delete(keys.silent, answered.queueKey)
	case answered.verb == callStatus && !isFailure(answered):
		keys.silent[answered.queueKey]++
	}
}

// enqueuesOwner reports whether the current list or watch event enqueues the key of a ReplicaSet or
// ReplicationController.
//
// A watch event of an orphan enqueues the key in two cases. The event changed the labels or
// controllerRef of the orphan, or the orphan became active or inactive. A list of pods enqueues the
// key only if it changed one of the owner's pods or removed any pod.
func enqueuesOwner(m *Model, r *history.Record, key workQueueKey) bool {
	view := key.process.view
	switch event, of := eventOf(r); {
	case of != objects.PodResource:
		return true
	case event.HasObject():
		pod := &r.Delivery.Object
		return pod.ControllerRef() != nil || view.podStateSince[pod.UID] == m.seq
	}
	for uid := range view.controlled[key.uid] {
		if versions := view.podVersions.byPod[uid]; len(versions) == 0 || versions[len(versions)-1].since == m.processTime {
			return true
		}
	}
	removed := view.podVersions.removed
	return len(removed) > 0 && removed[len(removed)-1].since == m.processTime
}

// backOffAfter returns how long upstream's work queue delays a key after the given number of
// failures in a row.
func backOffAfter(failures int) time.Duration {
	wait := firstRetry
	for n := 1; n < failures && wait < lastRetry; n++ {
		wait *= 2
	}
	return min(wait, lastRetry)
}
