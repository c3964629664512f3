package check

import (
	"maps"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// failedAttempts counts how often each call of the controller has failed in a row. It has
// separate counts for each work queue key, and for each call of a key.
type failedAttempts struct {
	// follows reports whether failedAttempts counts the failures of a call. newDroppedKeys, for
	// example, counts only calls for one kind of object.
	follows func(*call) bool
	// max is the number of consecutive failures after which the controller drops the key. The
	// next failure is then counted as the first. 0 means that the controller never drops a key.
	max int
	// byKey contains the failed calls of each work queue key. callOf returns the inner key.
	byKey map[workQueueKey]map[string]*callAttempts
	// sweepAt is the size of byKey at which the keys of deleted objects are removed next.
	sweepAt int
}

// callAttempts counts how often one call has failed since it last succeeded. Results of other
// calls for the same work queue key do not change the count.
type callAttempts struct {
	count int // number of failed attempts
	// latestSent is the sequence number of the request that failed last.
	latestSent int64
	// latestFailed is the sequence number of the last response that was counted as a failure or
	// as a retry by client-go. A failed request that was sent before this response is not
	// counted: it is part of the same attempt.
	latestFailed int64
	// failedAt is when the call last failed, on the clock of the process, which stops while the
	// process is paused (Model.processTime).
	failedAt time.Duration
	// clientRetries is how often client-go has resent the latest attempt by itself.
	clientRetries int
	// latestEvent is the sequence number of the last event that enqueued the key.
	latestEvent int64
}

// clientRetriesMax is how often client-go resends a request by itself before it returns the
// error to the controller. client-go calls this number maxRetries (allowed behavior
// client-retries).
const clientRetriesMax = 10

// newFailedAttempts returns an empty failedAttempts. The parameters are the values of its fields
// max and follows.
func newFailedAttempts(max int, follows func(*call) bool) *failedAttempts {
	return &failedAttempts{follows: follows, max: max, byKey: map[workQueueKey]map[string]*callAttempts{}}
}

// observe counts the call if the current record is the response of a failed call. If the call
// succeeded, observe deletes its count.
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

// fail counts a failed call, unless it is part of an attempt that has already been counted.
//
// An attempt includes all requests that the process sent before it received the first failure.
// It also includes the retries that client-go sends by itself.
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

// attemptsOf returns the count of a call. If the call has no count yet, attemptsOf adds one
// with 0 failures.
//
// To limit the memory, it then deletes counts of the same work queue key that are older than
// lastRetry, the longest back-off. When the number of keys has doubled since the last cleanup,
// it also deletes the keys of deleted objects.
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

// callOf returns a string that identifies a call among the calls for one work queue key.
//
// It is "" for all writes of Endpoints: a sync writes the Endpoints of a Service only once, so
// all of them are retries of each other.
func callOf(answered *answeredCall) string {
	if answered.serviceState != nil {
		return ""
	}
	return answered.key
}

// recordEvent records that the current record enqueued a work queue key. The controller then
// syncs the object at once, without waiting for the back-off.
func (attempts *failedAttempts) recordEvent(m *Model, key workQueueKey) {
	for _, attempt := range attempts.byKey[key] {
		attempt.latestEvent = m.seq
	}
}
