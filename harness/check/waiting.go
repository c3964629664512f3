package check

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Back-off of a work queue of upstream's, of one key (contract ReplicaSet 17).
const (
	firstRetry = 5 * time.Millisecond
	lastRetry  = 1000 * time.Second
)

// waiting is what processes have tried for owners of pods without success, as long as no
// news has come of them since: so they wait for their next try.
type waiting struct{ *tries }

func newWaiting() waiting { return waiting{newTries(0, func(c *call) bool { return c.ledger != nil })} }

func (w waiting) observe(m *Model, r *history.Record) {
	for _, wake := range m.wakes {
		if w.byKey[wake.item] != nil && isNews(m, r, wake.item) {
			w.wake(m, wake.item)
		}
	}
	w.tries.observe(m, r)
}

// isNews reports whether what came is news to an owner of pods. An orphan of which
// nothing has changed by which it is claimed wakes nobody, nor does a list that says of
// the owner's pods what was known.
func isNews(m *Model, r *history.Record, i item) bool {
	view := i.process.view
	switch event, of := newsOf(r); {
	case of != podResource:
		return true
	case event.HasObject():
		pod := &r.Delivery.Object
		return pod.ControllerRef() != nil || view.claims[pod.UID] == m.seq
	}
	for uid := range view.controlled[i.uid] {
		if known := view.faces.of[uid]; len(known) == 0 || known[len(known)-1].since == m.at {
			return true
		}
	}
	gone := view.faces.gone
	return len(gone) > 0 && gone[len(gone)-1].since == m.at
}

// explains reports whether the next try for an owner is still to come, by the back-off
// that upstream has, in some process.
func (w waiting) explains(m *Model, owner types.UID) bool {
	for key := range m.keys(item{uid: owner}) {
		for _, tried := range w.byKey[key] {
			if tried.news < tried.sent && m.now-m.behind(key.process.name)-tried.at < backOffAfter(tried.n) {
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
