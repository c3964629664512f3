package check

import (
	"maps"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// tries is what processes have tried of some calls without success, by the key of the
// work queue and the call.
type tries struct {
	of      func(*call) bool // the calls
	max     int              // after how many in a row a key is given up, and counted anew; 0 is never
	byKey   map[item]map[string]*attempts
	sweepAt int
}

// attempts are those of one call since it last succeeded, whatever became of others of
// the same key.
type attempts struct {
	n      int
	sent   int64         // the record of the latest
	failed int64         // the record by which the latest was known to have failed
	at     time.Duration // and when that was, by the clock of the process
	repeat int           // how often the client library has sent it again for the latest try
	news   int64         // the latest record that calls for a try at once
}

// repeatsMax is how often the client library sends a call again by itself before it says
// that it has failed (trap 13; maxRetries of client-go's requests).
const repeatsMax = 10

func newTries(max int, of func(*call) bool) *tries {
	return &tries{of: of, max: max, byKey: map[item]map[string]*attempts{}}
}

func (t *tries) observe(m *Model, r *history.Record) {
	a := m.answered
	switch {
	case begins(r):
		forgetEnded(t.byKey)
	case a == nil || a.item.process == nil || !t.of(a.call):
	case isFailure(a):
		t.fail(m, a)
	default:
		if delete(t.byKey[a.item], triedBy(a)); len(t.byKey[a.item]) == 0 {
			delete(t.byKey, a.item)
		}
	}
}

// fail counts a call that failed. One that was sent before the failure of another was
// known is part of the same try, as is what the client library will send again.
func (t *tries) fail(m *Model, a *answer) {
	tried := t.attemptsOf(m, a)
	if a.seq > tried.failed {
		tried.failed = m.seq
		if repeats(a.response) && tried.repeat < repeatsMax {
			tried.repeat++
		} else {
			if tried.n == t.max && t.max > 0 {
				tried.n = 0
			}
			tried.n++
			tried.repeat = 0
		}
	}
	tried.at = m.at
	tried.sent = a.seq
}

// attemptsOf returns what is kept of a call. What can count no more is swept out: of a
// key, when another call of it fails, and keys, when their number has doubled.
func (t *tries) attemptsOf(m *Model, a *answer) *attempts {
	calls := t.byKey[a.item]
	if calls == nil {
		if len(t.byKey) >= t.sweepAt {
			maps.DeleteFunc(t.byKey, func(i item, _ map[string]*attempts) bool { return i.gone() })
			t.sweepAt = 2*len(t.byKey) + 64
		}
		calls = map[string]*attempts{}
		t.byKey[a.item] = calls
	}
	key := triedBy(a)
	if calls[key] == nil {
		maps.DeleteFunc(calls, func(_ string, tried *attempts) bool { return m.at-tried.at > lastRetry })
		calls[key] = &attempts{}
	}
	return calls[key]
}

// triedBy tells the calls of a key apart. A Service's Endpoints are written once in a
// try, in whatever way.
func triedBy(a *answer) string {
	if a.publication != nil {
		return ""
	}
	return a.key
}

// wake notes news of a key: what failed before is tried again at once.
func (t *tries) wake(m *Model, key item) {
	for _, tried := range t.byKey[key] {
		tried.news = m.seq
	}
}
