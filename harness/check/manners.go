package check

import (
	"fmt"
	"strings"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// This file judges how a controller behaves towards the API server when it
// fails, and whether it stays up.

const (
	// failuresMax is how often, within a second, one call may fail without a
	// success between when nothing new calls for it. A queue that starts at 5 ms
	// and doubles comes to 8 tries in the first second; a try may send a status
	// twice, and forgetting a key begins anew.
	failuresMax = 30
	// wakeByOwner is for how many more failures a new version of the owner is
	// good: the work it asks for may end the failing and begin it anew. News of
	// a pod is good for one.
	wakeByOwner = 10
	backOffSpan = time.Second
)

// backOffJudge: within any second, a call fails no more often than a queue with
// exponential back-off would repeat it.
type backOffJudge struct {
	findings
	drain  time.Duration // in which a whole batch gets past the client's rate limit
	states perLedger[repetition]
}

// repetition is how the calls for one owner have been failing.
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

func newBackOff(s Setting) Judge {
	j := &backOffJudge{drain: lag}
	if s.QPS > 0 {
		j.drain += time.Duration(burstLimit / s.QPS * float64(time.Second))
	}
	return j
}

func (j *backOffJudge) Observe(m *Model, _ *history.Record) {
	for _, t := range m.touched {
		weight := 1
		if t.itself {
			weight = wakeByOwner
		}
		j.states.of(t.ledger).wakes.add(m.at, weight)
	}
	a := m.answered
	if a == nil || a.ledger == nil {
		return
	}
	s := j.states.of(a.ledger)
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
	case a.verb == callDelete:
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
				a.ledger.name(), a.key, failures, backOffSpan, wakes),
			Expected: fmt.Sprintf("at most %d, at growing intervals", failuresMax+wakes),
			Object:   a.ledger.ref(),
			At:       m.at,
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

// leaseGrace is within what time of a failure to renew its lease a leader may
// exit because of it.
const leaseGrace = 30 * time.Second

// subjectPrefix begins the names of the subject's processes.
const subjectPrefix = "subject-"

// aliveJudge: no process of the subject dies that nobody stopped, unless it had
// trouble with its lease, which a leader that loses it must exit for.
type aliveJudge struct{ findings }

func newAlive(Setting) Judge { return &aliveJudge{} }

func (j *aliveJudge) Observe(m *Model, r *history.Record) {
	if m.sent != nil && j.tested < len(m.processes) {
		j.tested = len(m.processes)
	}
	// One that dies before the chaos has not been started: a broken run, no finding.
	if r.Process == nil || r.Process.Event != history.ProcessDied || m.phase == "" {
		return
	}
	if !strings.HasPrefix(r.Process.Name, subjectPrefix) {
		return
	}
	j.tested = max(j.tested, 1)
	if p := m.died; p != nil && p.leaseFailed && m.at-p.leaseLost <= leaseGrace {
		return
	}
	j.violate(func() Evidence {
		return Evidence{
			Summary:  fmt.Sprintf("%s died: %s", r.Process.Name, r.Process.Detail),
			Expected: "to run until it is stopped",
			At:       m.at,
			Records:  []int64{m.seq},
		}
	})
}
