package check

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Back-off of a work queue of upstream's, of one key (contract ReplicaSet 17).
const (
	firstRetry = 5 * time.Millisecond
	lastRetry  = 1000 * time.Second
)

// waiting is, by the key of an owner of pods in a work queue, what a process has tried
// for it without success, and no news has come of it since: so it waits for its next
// try.
type waiting map[item]map[string]*attempts

// attempts are those of one call, without a success between.
type attempts struct {
	n      int
	sent   int64         // the record of the latest
	failed int64         // the record by which the latest was known to have failed
	at     time.Duration // and when that was, by the clock of the process
	news   int64         // the latest record that calls for a try at once
}

func (w waiting) observe(m *Model, r *history.Record) {
	if begins(r) {
		maps.DeleteFunc(w, func(i item, _ map[string]*attempts) bool { return i.process.ended })
		return
	}
	for _, wake := range m.wakes {
		if w[wake.item] != nil && w.hears(m, r, wake) {
			for _, tried := range w[wake.item] {
				tried.news = m.seq
			}
		}
	}
	a := m.answered
	switch {
	case a == nil || a.ledger == nil:
	case !isFailure(a):
		if delete(w[a.item], a.key); len(w[a.item]) == 0 {
			delete(w, a.item)
		}
	case !repeats(a.response): // which is one try with what follows (trap 13)
		w.failed(m, a)
	}
}

// hears reports whether what came is news to an owner, and forgets one that is gone. A
// list that says of its pods what was known wakes nobody.
func (w waiting) hears(m *Model, r *history.Record, news wake) bool {
	view := news.process.view
	if view.owners[news.uid] == nil {
		delete(w, news.item)
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

// failed counts a call that failed. One that was sent before the failure of another was
// known is part of the same try.
func (w waiting) failed(m *Model, a *answer) {
	if w[a.item] == nil {
		w[a.item] = map[string]*attempts{}
	}
	tried := w[a.item][a.key]
	if tried == nil {
		tried = &attempts{}
		w[a.item][a.key] = tried
	}
	if a.seq > tried.failed {
		tried.n++
		tried.failed = m.seq
	}
	tried.at = m.at
	tried.sent = a.seq
}

// explains reports whether the next try for an owner is still to come, by the back-off
// that upstream has, in some process.
func (w waiting) explains(m *Model, owner types.UID) bool {
	for _, p := range m.processes {
		for _, tried := range w[item{process: p, uid: owner}] {
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
