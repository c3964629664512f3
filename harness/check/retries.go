package check

import (
	"maps"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// failedAttempts is what processes have tried of some calls without success, by the key of the
// work queue and the call.
type failedAttempts struct {
	follows func(*call) bool // the calls
	max     int              // after how many in a row a key is given up, and counted anew; 0 is never
	byKey   map[workQueueKey]map[string]*callAttempts
	sweepAt int
}

// callAttempts are those of one call since it last succeeded, whatever became of others of
// the same key.
type callAttempts struct {
	count         int
	latestSent    int64         // the record of the latest
	latestFailed  int64         // the record by which the latest was known to have failed
	failedAt      time.Duration // and when that was, by the clock of the process
	clientRetries int           // how often the client library has sent it again for the latest try
	latestEvent   int64         // the latest record that calls for a try at once
}

// clientRetriesMax is how often the client library sends a call again by itself before it says
// that it has failed (trap 13; maxRetries of client-go's requests).
const clientRetriesMax = 10

func newFailedAttempts(max int, of func(*call) bool) *failedAttempts {
	return &failedAttempts{follows: of, max: max, byKey: map[workQueueKey]map[string]*callAttempts{}}
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

// fail counts a call that failed. One that was sent before the failure of another was
// known is part of the same try, as is what the client library will send again.
func (attempts *failedAttempts) fail(m *Model, answered *answeredCall) {
	tried := attempts.attemptsOf(m, answered)
	if answered.seq > tried.latestFailed {
		tried.latestFailed = m.seq
		if isRetriedByClient(answered.response) && tried.clientRetries < clientRetriesMax {
			tried.clientRetries++
		} else {
			if tried.count == attempts.max && attempts.max > 0 {
				tried.count = 0
			}
			tried.count++
			tried.clientRetries = 0
		}
	}
	tried.failedAt = m.processTime
	tried.latestSent = answered.seq
}

// attemptsOf returns what is kept of a call. What can count no more is swept out: of a
// key, when another call of it fails, and keys, when their number has doubled.
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
		maps.DeleteFunc(calls, func(_ string, tried *callAttempts) bool { return m.processTime-tried.failedAt > lastRetry })
		calls[key] = &callAttempts{}
	}
	return calls[key]
}

// callOf tells the calls of a key apart. A Service's Endpoints are written once in a
// try, in whatever way.
func callOf(answered *answeredCall) string {
	if answered.serviceState != nil {
		return ""
	}
	return answered.key
}

// recordEvent notes news of a key: what failed before is tried again at once.
func (attempts *failedAttempts) recordEvent(m *Model, key workQueueKey) {
	for _, tried := range attempts.byKey[key] {
		tried.latestEvent = m.seq
	}
}
