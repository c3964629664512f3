package check

import (
	"fmt"
	"maps"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// backOffCheck demands that a controller retries a failing request with exponential back-off. It
// examines each response to a request that a controller sent while it processed a work queue key.
//
// The check counts how often the same request fails in a row. Slow start sends creates of pods in
// batches; the failures within one batch count as one. For a controller that
// controllers/CONTRACT.md does not describe, the check examines only writes. Among these writes, it
// skips creates with generateName, because one sync may send any number of them.
var backOffCheck = Check{
	ID:               "back-off",
	Guarantee:        "A controller retries a failing call with exponential back-off, unless new events enqueue the key. At most 30 failures of one call within a second are allowed (100 for a controller without a contract), and additional ones for each event.",
	Contract:         "ReplicaSet 17, Deployment 20, Endpoints 13",
	Property:         Safety,
	Scope:            general,
	ExercisedWhen:    "A call that a controller sends while it processes a work queue key fails.",
	Ignores:          "Reads of a controller without a contract, and its creates with generateName.",
	AllowedBehaviors: []string{"retry-delay", "client-retries", "immediate-recreation"},
	New:              newBackOffChecker,
}

const (
	// failuresMax is the maximum number of failures of one call within a second.
	//
	// The limit applies while the call never succeeds and no event arrives. A back-off that
	// starts at 5 ms and doubles makes 8 attempts in the first second. The limit is higher for
	// two reasons. One attempt may send a status update twice, and the back-off may restart at 5
	// ms during the second.
	failuresMax = 30
	// failuresPerObjectEvent is how many more failures within a second are allowed after each
	// event of the reconciled object. A sync of the new version may succeed, and the back-off of
	// later failures then starts again at its shortest delay.
	//
	// An event of another object, such as a pod of the ReplicaSet, allows only one more failure.
	failuresPerObjectEvent = 10
	// backOffSpan is the length of the sliding window in which the checker counts failures and
	// events.
	backOffSpan = time.Second

	// genericFailuresMax replaces failuresMax for the calls of a generic controller, which
	// controllers/CONTRACT.md does not describe.
	//
	// An exponential back-off makes 8 attempts in the first second (see failuresMax). In each
	// attempt, RetryOnConflict of client-go may send the call 5 times. The back-off may also
	// restart during that second.
	genericFailuresMax = 100
	// failuresPerDelivery is how many more failures within a second each list or watch event
	// allows. It applies only to the calls of generic controllers, because any object may
	// enqueue any key of such a controller.
	failuresPerDelivery = 5
)

// backOffChecker reports requests that fail more often within a second than exponential back-off
// allows.
type backOffChecker struct {
	findings
	batchTime time.Duration                 // how long a full batch of creates may take at the client-side rate limit
	byKey     map[workQueueKey]*keyFailures // recent failures and events of each key
	sweepAt   int                           // the number of keys in byKey at which a cleanup removes keys without recent failures
	// deliveries contains, for each process, how many additional failures its recent lists and
	// watch events allow. These events count only for generic controllers, which have no contract.
	// Any event may enqueue any key of such a controller.
	deliveries map[*process]*slidingSum
}

// keyFailures contains the recent failures of requests for one work queue key. It also contains the
// recent events that enqueued the key, because each event allows further failures.
type keyFailures struct {
	events  slidingSum                // the number of additional failures that recent events allow
	streaks map[string]*failureStreak // failures in a row, by call.key, which is the same for each retry of a request
	// created counts the successful creates of pods for the key. It determines batchAllowance.
	created int
	// lastCreated is the time of the last successful create, on the clock of the process
	// (Model.processTime).
	lastCreated time.Duration
	// batchAllowance is the number of failed creates that the checker will still ignore. They
	// may belong to the same slow-start batch as the last successful create, and are then no
	// retries. After n successes, a batch has at most n + 1 creates.
	batchAllowance int
}

// failureStreak counts how often one request, with its retries, failed without a success in
// between.
type failureStreak struct {
	failed   int64      // sequence number of the response record of the latest counted failure
	failures slidingSum // the number of failures within backOffSpan
	records  []int64    // sequence numbers of the latest 5 failed requests
}

func newBackOffChecker(s Settings) Checker {
	return &backOffChecker{findings: findings{upstream: s.Upstream}, batchTime: s.batchTime(), byKey: map[workQueueKey]*keyFailures{}, deliveries: map[*process]*slidingSum{}}
}

// of returns the stored failures for a work queue key, so that the caller can add failures or
// events. If nothing is stored for the key, it stores an empty keyFailures.
//
// When the number of keys has doubled since the last cleanup, the method removes keys of ended
// processes. It also removes keys whose failures, events and creates are too old to count.
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

// over reports whether the checker may forget the failures of a work queue key. All failures,
// events and creates are then too old to affect the check. The parameter at is the current time.
func (s *keyFailures) over(at, batchTime time.Duration) bool {
	for _, streak := range s.streaks {
		if streak.failures.total(at) > 0 {
			return false
		}
	}
	return s.events.total(at) == 0 && at-s.lastCreated > batchTime
}

func (checker *backOffChecker) Observe(m *Model, _ *history.Record) {
	for _, event := range m.events {
		weight := 1
		if event.objectChanged {
			weight = failuresPerObjectEvent
		}
		checker.of(event.workQueueKey, m.processTime).events.add(m.processTime, weight)
	}
	checker.recordDelivery(m)
	answered := m.answered
	if answered == nil || answered.queueKey.process == nil || answered.generic != nil && answered.generic.unnamed {
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

// recordDelivery raises the failure limit of a process that receives a list or watch event. The
// event may enqueue any key of a generic controller (one without a contract), whose requests may
// then fail again. Without a generic controller under test, recordDelivery does nothing.
func (checker *backOffChecker) recordDelivery(m *Model) {
	if m.delivered != nil && len(m.tested.generic) > 0 {
		checker.deliveriesTo(m.delivered).add(m.processTime, failuresPerDelivery)
	}
}

// deliveriesTo returns how many additional failures the recent lists and watch events of a
// process allow. For a new process, it adds an empty sum and removes the sums of ended processes.
func (checker *backOffChecker) deliveriesTo(p *process) *slidingSum {
	if checker.deliveries[p] == nil {
		maps.DeleteFunc(checker.deliveries, func(old *process, _ *slidingSum) bool { return old.ended })
		checker.deliveries[p] = new(slidingSum)
	}
	return checker.deliveries[p]
}

// fail counts a failed request. It reports a violation if the request and its retries have failed
// too often within backOffSpan (1 s).
func (checker *backOffChecker) fail(m *Model, answered *answeredCall, s *keyFailures) {
	if s.streaks == nil {
		s.streaks = map[string]*failureStreak{}
	}
	streak := s.streaks[answered.key]
	if streak == nil {
		for key, old := range s.streaks {
			if old.failures.total(m.processTime) == 0 {
				delete(s.streaks, key)
			}
		}
		streak = &failureStreak{}
		s.streaks[answered.key] = streak
	}
	if answered.seq < streak.failed {
		return // the process sent this call before it got the previous failure, so both calls belong to one attempt
	}
	streak.failed = m.seq
	streak.failures.add(m.processTime, 1)
	streak.records = append(streak.records[max(0, len(streak.records)-4):], answered.seq)
	failures, recentEvents, limit := streak.failures.total(m.processTime), s.events.total(m.processTime), failuresMax
	if answered.generic != nil {
		recentEvents, limit = checker.deliveriesTo(answered.process).total(m.processTime), genericFailuresMax
	}
	if failures <= limit+recentEvents {
		return
	}
	describe := func() Evidence {
		return Evidence{
			Summary:  fmt.Sprintf("%s: %s failed %d times within %v", answered.queueKey, callName(answered.call), failures, backOffSpan),
			Expected: fmt.Sprintf("exponential back-off, with at most %d failures within %v: %d, plus %d because recent watch events may have enqueued the object again", limit+recentEvents, backOffSpan, limit, recentEvents),
			Object:   answered.queueKey.ref(),
			At:       m.now,
			Records:  append([]int64(nil), streak.records...),
		}
	}
	if scalesDown(answered.call) {
		checker.addKnownViolation(swallowedError, describe)
		return
	}
	checker.addViolation(describe)
}

// slidingSum adds up values, and forgets each value after backOffSpan (1 s). It counts, for
// example, the failures of a request within the last second.
type slidingSum struct {
	entries []slidingSumEntry // oldest first
	sum     int               // of all entries
}

// slidingSumEntry is one value of a slidingSum, with the time at which it was added.
type slidingSumEntry struct {
	at time.Duration
	n  int
}

func (t *slidingSum) add(at time.Duration, n int) {
	t.total(at)
	t.entries = append(t.entries, slidingSumEntry{at, n})
	t.sum += n
}

// total returns the sum of the values that are not older than backOffSpan at the given time. It
// removes older values.
func (t *slidingSum) total(at time.Duration) int {
	old := 0
	for old < len(t.entries) && at-t.entries[old].at > backOffSpan {
		t.sum -= t.entries[old].n
		old++
	}
	t.entries = t.entries[old:]
	return t.sum
}
