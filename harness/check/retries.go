package check

import (
	"maps"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// failedAttempts counts how often each request of the controller has failed in a row. Requests
// with the same verb and object count as the same request. The counts are separate for each work
// queue key.
type failedAttempts struct {
	// follows reports whether failedAttempts counts the failures of the given request. For example,
	// the type droppedKeys counts only failures of requests for one kind of object.
	follows func(*call) bool
	// max is the number of consecutive failures after which the controller drops the work queue
	// key. After that, the next failure counts as the first. 0 means that the controller never
	// drops a key.
	max int
	// byKey contains the counts of each work queue key, by the string that callOf returns for the
	// request.
	byKey map[workQueueKey]map[string]*callAttempts
	// silent contains the number of syncs of a work queue key that may have failed without a request. It is
	// nil if the controller has no such syncs.
	silent map[workQueueKey]int
	// sweepAt is the number of keys in byKey that triggers the next cleanup. A cleanup removes the
	// keys of deleted objects.
	sweepAt int
}

// callAttempts counts how often one request has failed since its last success. A success of
// another request for the same work queue key does not reset the count.
type callAttempts struct {
	count int // number of failed attempts
	// latestSent is the sequence number of the record that contains the request that failed last.
	latestSent int64
	// latestFailed is the sequence number of the last response that counted as a failure or as a
	// retry by client-go. A request that the process sent before that response belongs to the
	// same attempt, so its failure is not counted.
	latestFailed int64
	// failedAt is when the request last failed, on the clock of the process. This clock
	// (Model.processTime) stops while the process is paused.
	failedAt time.Duration
	// clientRetries is how often client-go has resent the request of the latest attempt by itself.
	clientRetries int
	// latestEvent is the sequence number of the last list or watch event that enqueued the work
	// queue key. If this event came after the request in latestSent, the key does not wait for a
	// retry.
	latestEvent int64
}

// clientRetriesMax is how often client-go resends a request by itself before it returns the
// error to the controller. client-go calls this number maxRetries (allowed behavior
// client-retries).
const clientRetriesMax = 10

// newFailedAttempts returns a failedAttempts without counts. The parameters set the fields max
// and follows.
func newFailedAttempts(max int, follows func(*call) bool) *failedAttempts {
	return &failedAttempts{follows: follows, max: max, byKey: map[workQueueKey]map[string]*callAttempts{}}
}

// observe reads the next record of the history. A failed response increases the count of its
// request, and a successful response deletes the count. It ignores requests for which the function
// in the field follows returns false.
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

// fail counts a failed request, unless the request is part of an attempt whose failure has been
// counted.
//
// One attempt includes all requests that the process sent before it received the attempt's first
// failure. It also includes the retries that client-go sends by itself.
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

// attemptsOf returns the count of a request. If the request has no count yet, attemptsOf adds one
// with 0 failures.
//
// To limit memory, attemptsOf then deletes old counts of the same work queue key. A count is old
// if the last failure was longer ago than lastRetry, the longest back-off. When the number of
// keys has doubled since the last cleanup, attemptsOf also deletes the keys of deleted objects.
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

// callOf returns a string that identifies a request and its retries among the requests for one
// work queue key.
//
// For writes of Endpoints the string is "". A sync writes the Endpoints of a Service only once,
// so all these writes are retries of each other.
func callOf(answered *answeredCall) string {
	if answered.serviceState != nil {
		return ""
	}
	return answered.key
}

// recordEvent records that the current list or watch event enqueued a work queue key. The
// controller then syncs the object at once, without waiting for the back-off.
func (attempts *failedAttempts) recordEvent(m *Model, key workQueueKey) {
	for _, attempt := range attempts.byKey[key] {
		attempt.latestEvent = m.seq
	}
}

// retryFollows reports whether the work queue key waits for the retry of a failed request. The result
// is false if an event has enqueued the key since the failure. The controller may retry the request
// much later than backOffAfter says, because the history does not show each failed sync.
func (attempts *failedAttempts) retryFollows(key workQueueKey) bool {
	for _, tried := range attempts.byKey[key] {
		if tried.latestEvent <= tried.latestSent {
			return true
		}
	}
	return false
}

// waits reports whether the work queue key of an object waits for the retry of a failed request. The
// result is false if an event has enqueued the key since the failure, or if the key was dropped.
//
// The method computes the time of the retry from the number of failures of all requests for the key,
// because each failed sync doubles the back-off, whichever request failed. It ignores processes that
// are paused or cannot hold the lease.
func (attempts *failedAttempts) waits(m *Model, object workQueueKey) bool {
	for key := range m.activeKeys(object) {
		failures := attempts.silent[key]
		for _, tried := range attempts.byKey[key] {
			failures += tried.count
		}
		for _, tried := range attempts.byKey[key] {
			inQueue := tried.count != attempts.max && tried.clientRetries == 0
			if inQueue && tried.latestEvent <= tried.latestSent && m.clockOf(key.process.name)-tried.failedAt < backOffAfter(failures) {
				return true
			}
		}
	}
	return false
}
