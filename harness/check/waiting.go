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
type waiting struct{ tries }

func (w waiting) observe(m *Model, r *history.Record) {
	for _, wake := range m.wakes {
		if w.tries[wake.item] != nil && w.hears(m, r, wake) {
			for _, tried := range w.tries[wake.item] {
				tried.news = m.seq
			}
		}
	}
	w.tries.observe(m, r)
}

// hears reports whether what came is news to an owner, and forgets one that is gone. A
// list that says of its pods what was known wakes nobody.
func (w waiting) hears(m *Model, r *history.Record, news wake) bool {
	view := news.process.view
	if view.owners[news.uid] == nil {
		delete(w.tries, news.item)
		return false
	}
	if event, of := newsOf(r); of != podResource || event.OfObject() {
		return true
	}
	for uid := range view.controlled[news.uid] {
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
	for _, p := range m.processes {
		for _, tried := range w.tries[item{process: p, uid: owner}] {
			if tried.news < tried.sent && m.now-m.behind(p.name)-tried.at < backOffAfter(tried.n) {
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
