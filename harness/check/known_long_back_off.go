package check

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// The delay before the next retry of a key, in a work queue of upstream (contract
// ReplicaSet 17).
const (
	firstRetry = 5 * time.Millisecond // after the first failure; each further failure doubles the delay
	lastRetry  = 1000 * time.Second   // the maximum
)

// backingOffKeys finds ReplicaSets and ReplicationControllers whose key waits in a work queue
// for its next retry. It recognizes the known upstream issue long-back-off.
//
// It counts the consecutive failures of each call. A key no longer waits if an event has
// enqueued it since the last failed call.
type backingOffKeys struct{ *failedAttempts }

// newBackingOffKeys returns backingOffKeys without failures. It counts calls for ReplicaSets
// and ReplicationControllers.
func newBackingOffKeys() backingOffKeys {
	return backingOffKeys{newFailedAttempts(0, func(c *call) bool { return c.ownerState != nil })}
}

// observe counts failed calls, and records which keys the current record enqueued.
func (keys backingOffKeys) observe(m *Model, r *history.Record) {
	for _, event := range m.events {
		if keys.byKey[event.workQueueKey] != nil && enqueuesOwner(m, r, event.workQueueKey) {
			keys.recordEvent(m, event.workQueueKey)
		}
	}
	keys.failedAttempts.observe(m, r)
}

// enqueuesOwner reports whether a list or watch event enqueues a ReplicaSet or
// ReplicationController.
//
// The event of an orphan does so only if its labels or controllerRef changed, or if it became
// active or inactive. A list of pods does so only if it changed one of the owner's pods or
// removed any pod.
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

// explains reports whether the key of an owner of pods still waits for its next retry. It
// looks at all processes that are not paused and may hold the lease. It computes the time of
// the retry from the number of failures.
func (keys backingOffKeys) explains(m *Model, owner types.UID) bool {
	for key := range m.activeKeys(workQueueKey{uid: owner}) {
		for _, tried := range keys.byKey[key] {
			if tried.latestEvent < tried.latestSent && m.clockOf(key.process.name)-tried.failedAt < backOffAfter(tried.count) {
				return true
			}
		}
	}
	return false
}

// backOffAfter returns how long an upstream work queue delays a key after the given number of
// failures in a row.
func backOffAfter(failures int) time.Duration {
	wait := firstRetry
	for n := 1; n < failures && wait < lastRetry; n++ {
		wait *= 2
	}
	return min(wait, lastRetry)
}
