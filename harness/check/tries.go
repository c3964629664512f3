package check

import (
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// tries is, by the key of a work queue of a process, what was tried for it without
// success, by call.
type tries map[item]map[string]*attempts

// attempts are those of one call, without a success between.
type attempts struct {
	n      int
	sent   int64         // the record of the latest
	failed int64         // the record by which the latest was known to have failed
	at     time.Duration // and when that was, by the clock of the process
	news   int64         // the latest record that calls for a try at once; only waiting notes it
}

func (t tries) observe(m *Model, r *history.Record) {
	if begins(r) {
		forgetEnded(t)
		return
	}
	a := m.answered
	switch {
	case a == nil || a.item.process == nil:
	case !isFailure(a):
		if delete(t[a.item], a.key); len(t[a.item]) == 0 {
			delete(t, a.item)
		}
	case !repeats(a.response): // which is one try with what follows (trap 13)
		t.fail(m, a)
	}
}

// fail counts a call that failed. One that was sent before the failure of another was
// known is part of the same try.
func (t tries) fail(m *Model, a *answer) {
	if t[a.item] == nil {
		t[a.item] = map[string]*attempts{}
	}
	tried := t[a.item][a.key]
	if tried == nil {
		tried = &attempts{}
		t[a.item][a.key] = tried
	}
	if a.seq > tried.failed {
		tried.n++
		tried.failed = m.seq
	}
	tried.at = m.at
	tried.sent = a.seq
}
