package check

import (
	"fmt"
	"maps"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

const (
	// failuresMax is how often, within a second, one call may fail without a
	// success between when nothing new calls for it. A queue that starts at 5 ms
	// and doubles comes to 8 tries in the first second; a try may send a status
	// twice, and forgetting a key begins anew.
	failuresMax = 30
	// wakeByOwner is for how many more failures a new version of the object itself
	// is good: the work it asks for may end the failing and begin it anew. News of
	// what belongs to it is good for one.
	wakeByOwner = 10
	backOffSpan = time.Second
)

// backOffJudge: within any second, a call fails no more often than a queue with
// exponential back-off would repeat it.
type backOffJudge struct {
	findings
	drain   time.Duration // in which a whole batch gets past the client's rate limit
	states  map[item]*repetition
	sweepAt int
}

// repetition is how the calls for one object have been failing.
type repetition struct {
	wakes tail
	calls map[string]*streak // by the call's key
	// The siblings of one batch of creates count as one try: as many more may
	// fail as a batch may have had at the last success.
	created     int
	lastCreated time.Duration
	siblings    int
}

// streak is failures of one call without a success between.
type streak struct {
	failed   int64 // the record by which the latest try was known to have failed
	failures tail
	records  []int64 // the latest few
}

func newBackOff(s Settings) Checker {
	return &backOffJudge{drain: s.drain(), states: map[item]*repetition{}}
}

// of returns what is kept of an item. When their number has doubled, those of
// which nothing counts any more are swept out.
func (j *backOffJudge) of(i item, at time.Duration) *repetition {
	if s := j.states[i]; s != nil {
		return s
	}
	if len(j.states) >= j.sweepAt {
		maps.DeleteFunc(j.states, func(i item, s *repetition) bool { return i.process.ended || s.over(at, j.drain) })
		j.sweepAt = 2*len(j.states) + 64
	}
	j.states[i] = &repetition{}
	return j.states[i]
}

// over reports whether nothing that happened so far can count any more.
func (s *repetition) over(at, drain time.Duration) bool {
	for _, run := range s.calls {
		if run.failures.total(at) > 0 {
			return false
		}
	}
	return s.wakes.total(at) == 0 && at-s.lastCreated > drain
}

func (j *backOffJudge) Observe(m *Model, _ *history.Record) {
	for _, w := range m.wakes {
		weight := 1
		if w.itself {
			weight = wakeByOwner
		}
		j.of(w.item, m.at).wakes.add(m.at, weight)
	}
	a := m.answered
	if a == nil || a.item.process == nil {
		return
	}
	s := j.of(a.item, m.at)
	if !isFailure(a) {
		delete(s.calls, a.key)
		if a.verb == callCreate {
			s.created++
			s.lastCreated = m.at
			s.siblings = min(burstLimit, 1+s.created)
		}
		return
	}
	j.tested++
	if a.verb == callCreate && s.siblings > 0 && m.at-s.lastCreated <= j.drain {
		s.siblings--
		return
	}
	j.fail(m, a, s)
}

// isFailure reports whether the controller must take the answer for a failure:
// a pod that is gone already needs no deleting, adopting or releasing.
func isFailure(a *answer) bool {
	switch {
	case a.response.OK():
		return false
	case a.verb == callDelete, a.publication != nil:
		return a.response.Code != 404
	case a.verb == callClaim:
		return a.response.Code != 404 && a.response.Code != 422
	}
	return true
}

func (j *backOffJudge) fail(m *Model, a *answer, s *repetition) {
	if s.calls == nil {
		s.calls = map[string]*streak{}
	}
	run := s.calls[a.key]
	if run == nil {
		for key, old := range s.calls {
			if old.failures.total(m.at) == 0 {
				delete(s.calls, key)
			}
		}
		run = &streak{}
		s.calls[a.key] = run
	}
	if a.seq < run.failed {
		return // sent before the failure was known: part of the same try
	}
	run.failed = m.seq
	run.failures.add(m.at, 1)
	run.records = append(run.records[max(0, len(run.records)-4):], a.seq)
	failures, wakes := run.failures.total(m.at), s.wakes.total(m.at)
	if failures <= failuresMax+wakes {
		return
	}
	j.violate(func() Evidence {
		return Evidence{
			Summary: fmt.Sprintf("%s: %s failed %d times within %v, with %d to spare for what came in meanwhile",
				a.item, a.key, failures, backOffSpan, wakes),
			Expected: fmt.Sprintf("at most %d, at growing intervals", failuresMax+wakes),
			Object:   a.item.ref(),
			At:       m.now,
			Records:  append([]int64(nil), run.records...),
		}
	})
}

// tail sums what was added within the last backOffSpan.
type tail struct {
	entries []tailEntry
	sum     int
}

type tailEntry struct {
	at time.Duration
	n  int
}

func (t *tail) add(at time.Duration, n int) {
	t.total(at)
	t.entries = append(t.entries, tailEntry{at, n})
	t.sum += n
}

func (t *tail) total(at time.Duration) int {
	old := 0
	for old < len(t.entries) && at-t.entries[old].at > backOffSpan {
		t.sum -= t.entries[old].n
		old++
	}
	t.entries = t.entries[old:]
	return t.sum
}
