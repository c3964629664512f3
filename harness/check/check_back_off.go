package check

import (
	"fmt"
	"maps"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// backOffCheck is the row of back-off in All.
var backOffCheck = Check{
	ID:               "back-off",
	Guarantee:        "A call that keeps failing is repeated at growing intervals, unless something new calls for it.",
	Contract:         "ReplicaSet 17, Deployment 20, Endpoints 13",
	Property:         Safety,
	AllowedBehaviors: []string{"retry-delay", "client-retries", "immediate-recreation"},
	New:              newBackOffChecker,
}

const (
	// failuresMax is how often, within a second, one call may fail without a
	// success between when nothing new calls for it. A queue that starts at 5 ms
	// and doubles comes to 8 tries in the first second; a try may send a status
	// twice, and forgetting a key begins anew.
	failuresMax = 30
	// failuresPerObjectEvent is for how many more failures a new version of the object itself
	// is good: the work it asks for may end the failing and begin it anew. News of
	// what belongs to it is good for one.
	failuresPerObjectEvent = 10
	backOffSpan            = time.Second
)

// backOffChecker: within any second, a call fails no more often than a queue with
// exponential back-off would repeat it.
type backOffChecker struct {
	findings
	batchTime time.Duration // in which a whole batch gets past the client's rate limit
	byKey     map[workQueueKey]*keyFailures
	sweepAt   int
}

// keyFailures is how the calls for one object have been failing.
type keyFailures struct {
	events  slidingSum
	streaks map[string]*failureStreak // by the call's key
	// The siblings of one batch of creates count as one try: as many more may
	// fail as a batch may have had at the last success.
	created        int
	lastCreated    time.Duration
	batchAllowance int
}

// failureStreak is failures of one call without a success between.
type failureStreak struct {
	failed   int64 // the record by which the latest try was known to have failed
	failures slidingSum
	records  []int64 // the latest few
}

func newBackOffChecker(s Settings) Checker {
	return &backOffChecker{batchTime: s.batchTime(), byKey: map[workQueueKey]*keyFailures{}}
}

// of returns what is kept of an item. When their number has doubled, those of
// which nothing counts any more are swept out.
func (checker *backOffChecker) of(key workQueueKey, at time.Duration) *keyFailures {
	if s := checker.byKey[key]; s != nil {
		return s
	}
	if len(checker.byKey) >= checker.sweepAt {
		maps.DeleteFunc(checker.byKey, func(key workQueueKey, s *keyFailures) bool { return key.process.ended || s.over(at, checker.batchTime) })
		checker.sweepAt = 2*len(checker.byKey) + 64
	}
	checker.byKey[key] = &keyFailures{}
	return checker.byKey[key]
}

// over reports whether nothing that happened so far can count any more.
func (s *keyFailures) over(at, drain time.Duration) bool {
	for _, run := range s.streaks {
		if run.failures.total(at) > 0 {
			return false
		}
	}
	return s.events.total(at) == 0 && at-s.lastCreated > drain
}

func (checker *backOffChecker) Observe(m *Model, _ *history.Record) {
	for _, event := range m.events {
		weight := 1
		if event.objectChanged {
			weight = failuresPerObjectEvent
		}
		checker.of(event.workQueueKey, m.processTime).events.add(m.processTime, weight)
	}
	answered := m.answered
	if answered == nil || answered.queueKey.process == nil {
		return
	}
	s := checker.of(answered.queueKey, m.processTime)
	if !isFailure(answered) {
		delete(s.streaks, answered.key)
		if answered.verb == callCreatePod {
			s.created++
			s.lastCreated = m.processTime
			s.batchAllowance = min(burstLimit, 1+s.created)
		}
		return
	}
	checker.exercised++
	if answered.verb == callCreatePod && s.batchAllowance > 0 && m.processTime-s.lastCreated <= checker.batchTime {
		s.batchAllowance--
		return
	}
	checker.fail(m, answered, s)
}

func (checker *backOffChecker) fail(m *Model, answered *answeredCall, s *keyFailures) {
	if s.streaks == nil {
		s.streaks = map[string]*failureStreak{}
	}
	run := s.streaks[answered.key]
	if run == nil {
		for key, old := range s.streaks {
			if old.failures.total(m.processTime) == 0 {
				delete(s.streaks, key)
			}
		}
		run = &failureStreak{}
		s.streaks[answered.key] = run
	}
	if answered.seq < run.failed {
		return // sent before the failure was known: part of the same try
	}
	run.failed = m.seq
	run.failures.add(m.processTime, 1)
	run.records = append(run.records[max(0, len(run.records)-4):], answered.seq)
	failures, recentEvents := run.failures.total(m.processTime), s.events.total(m.processTime)
	if failures <= failuresMax+recentEvents {
		return
	}
	checker.addViolation(func() Evidence {
		return Evidence{
			Summary: fmt.Sprintf("%s: %s failed %d times within %v, with %d to spare for what came in meanwhile",
				answered.queueKey, answered.key, failures, backOffSpan, recentEvents),
			Expected: fmt.Sprintf("at most %d, at growing intervals", failuresMax+recentEvents),
			Object:   answered.queueKey.ref(),
			At:       m.now,
			Records:  append([]int64(nil), run.records...),
		}
	})
}

// slidingSum sums what was added within the last backOffSpan.
type slidingSum struct {
	entries []slidingSumEntry
	sum     int
}

type slidingSumEntry struct {
	at time.Duration
	n  int
}

func (t *slidingSum) add(at time.Duration, n int) {
	t.total(at)
	t.entries = append(t.entries, slidingSumEntry{at, n})
	t.sum += n
}

func (t *slidingSum) total(at time.Duration) int {
	old := 0
	for old < len(t.entries) && at-t.entries[old].at > backOffSpan {
		t.sum -= t.entries[old].n
		old++
	}
	t.entries = t.entries[old:]
	return t.sum
}
