package check

import (
	"maps"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// failedAttempts counts the failed attempts of calls, for each work queue key and each
// call.
type failedAttempts struct {
	follows func(*call) bool // selects the calls
	max     int              // consecutive failures after which the controller drops the key and the count restarts; 0 means no limit
	byKey   map[workQueueKey]map[string]*callAttempts
	sweepAt int
}

// callAttempts counts the failed attempts of one call since it last succeeded.
//
// The results of other calls for the same work queue key do not change it.
type callAttempts struct {
	count         int
	latestSent    int64         // sequence number of the record with the latest attempt
	latestFailed  int64         // sequence number of the record with the failure of the latest attempt
	failedAt      time.Duration // the time of that record, by the clock of the process
	clientRetries int           // number of times that client-go has resent the latest attempt by itself
	latestEvent   int64         // sequence number of the record with the latest event that enqueues the key
}

// clientRetriesMax is the number of times that client-go resends a call before it returns
// an error.
//
// The value is that of maxRetries in client-go (allowed behavior client-retries).
const clientRetriesMax = 10

func newFailedAttempts(max int, follows func(*call) bool) *failedAttempts {
	return &failedAttempts{follows: follows, max: max, byKey: map[workQueueKey]map[string]*callAttempts{}}
}

func (attempts *failedAttempts) observe(m *Model, r *history.Record) {
	answered := m.answered
	switch {
	case processStarts(r):
		dropEndedProcesses(attempts.byKey)
	case answered == nil || answered.queueKey.process == nil || !attempts.follows(answered.call):
	case isFailure(answered):
		attempts.fail(m, answered)
	default:
		if delete(attempts.byKey[answered.queueKey], callOf(answered)); len(attempts.byKey[answered.queueKey]) == 0 {
			delete(attempts.byKey, answered.queueKey)
		}
	}
}

// fail counts a failed attempt. Two failed calls belong to the same attempt if the process
// sent the second before it received the failure of the first. A call that client-go
// resends by itself also belongs to the same attempt.
func (attempts *failedAttempts) fail(m *Model, answered *answeredCall) {
	attempt := attempts.attemptsOf(m, answered)
	if answered.seq > attempt.latestFailed {
		attempt.latestFailed = m.seq
		if isRetriedByClient(answered.response) && attempt.clientRetries < clientRetriesMax {
			attempt.clientRetries++
		} else {
			if attempt.count == attempts.max && attempts.max > 0 {
				attempt.count = 0
			}
			attempt.count++
			attempt.clientRetries = 0
		}
	}
	attempt.failedAt = m.processTime
	attempt.latestSent = answered.seq
}

// attemptsOf returns the failed attempts of a call, and creates an entry if there is none.
//
// It also removes other calls of the same key if their last failure was longer than
// lastRetry ago. When the number of keys has doubled, it removes the keys of deleted
// objects.
func (attempts *failedAttempts) attemptsOf(m *Model, answered *answeredCall) *callAttempts {
	calls := attempts.byKey[answered.queueKey]
	if calls == nil {
		if len(attempts.byKey) >= attempts.sweepAt {
			maps.DeleteFunc(attempts.byKey, func(i workQueueKey, _ map[string]*callAttempts) bool { return i.objectGone() })
			attempts.sweepAt = 2*len(attempts.byKey) + 64
		}
		calls = map[string]*callAttempts{}
		attempts.byKey[answered.queueKey] = calls
	}
	key := callOf(answered)
	if calls[key] == nil {
		maps.DeleteFunc(calls, func(_ string, attempt *callAttempts) bool { return m.processTime-attempt.failedAt > lastRetry })
		calls[key] = &callAttempts{}
	}
	return calls[key]
}

// callOf returns the string that distinguishes a call from other calls for the same work
// queue key. A sync writes the Endpoints of a Service once, so all writes of Endpoints
// count as one call.
func callOf(answered *answeredCall) string {
	if answered.serviceState != nil {
		return ""
	}
	return answered.key
}

// recordEvent records that an event enqueued a key. The controller then retries the failed
// calls of this key at once.
func (attempts *failedAttempts) recordEvent(m *Model, key workQueueKey) {
	for _, attempt := range attempts.byKey[key] {
		attempt.latestEvent = m.seq
	}
}
