package check

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// The back-off of one key in an upstream work queue doubles from firstRetry to lastRetry
// (contract ReplicaSet 17).
const (
	firstRetry = 5 * time.Millisecond
	lastRetry  = 1000 * time.Second
)

// backingOffKeys counts the consecutive failures of each call for an owner of pods. The key
// of such an owner waits in the work queue until its next retry, unless an event has
// enqueued it since the last failed attempt.
type backingOffKeys struct{ *failedAttempts }

func newBackingOffKeys() backingOffKeys {
	return backingOffKeys{newFailedAttempts(0, func(c *call) bool { return c.ownerState != nil })}
}

func (keys backingOffKeys) observe(m *Model, r *history.Record) {
	for _, event := range m.events {
		if keys.byKey[event.workQueueKey] != nil && enqueuesOwner(m, r, event.workQueueKey) {
			keys.recordEvent(m, event.workQueueKey)
		}
	}
	keys.failedAttempts.observe(m, r)
}

// enqueuesOwner reports whether a delivery enqueues an owner of pods. The event of an
// orphan enqueues an owner only if the orphan's labels or controllerRef changed, or if it
// became active or inactive. A list does not enqueue an owner if the pods of the owner are
// unchanged and the list removed no pod.
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

// explains reports whether the key of an owner still waits for its next retry in any
// process. It calculates the time of the retry from the back-off of upstream.
func (keys backingOffKeys) explains(m *Model, owner types.UID) bool {
	for key := range m.activeKeys(workQueueKey{uid: owner}) {
		for _, tried := range keys.byKey[key] {
			if tried.latestEvent < tried.latestSent && m.now-m.clockOffset(key.process.name)-tried.failedAt < backOffAfter(tried.count) {
				return true
			}
		}
	}
	return false
}

// backOffAfter returns the back-off of a key after the given number of failures.
func backOffAfter(failures int) time.Duration {
	wait := firstRetry
	for n := 1; n < failures && wait < lastRetry; n++ {
		wait *= 2
	}
	return min(wait, lastRetry)
}
