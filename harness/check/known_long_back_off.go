package check

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// Back-off of a work queue of upstream's, of one key (contract ReplicaSet 17).
const (
	firstRetry = 5 * time.Millisecond
	lastRetry  = 1000 * time.Second
)

// backingOffKeys is what processes have tried for owners of pods without success, as long as no
// news has come of them since: so they wait for their next try.
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

// enqueuesOwner reports whether what came is news to an owner of pods. An orphan of which
// nothing has changed by which it is claimed wakes nobody, nor does a list that says of
// the owner's pods what was known.
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
		if known := view.podVersions.byPod[uid]; len(known) == 0 || known[len(known)-1].since == m.processTime {
			return true
		}
	}
	gone := view.podVersions.removed
	return len(gone) > 0 && gone[len(gone)-1].since == m.processTime
}

// explains reports whether the next try for an owner is still to come, by the back-off
// that upstream has, in some process.
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

// backOffAfter is how long a key waits that has failed so often.
func backOffAfter(failures int) time.Duration {
	wait := firstRetry
	for n := 1; n < failures && wait < lastRetry; n++ {
		wait *= 2
	}
	return min(wait, lastRetry)
}
