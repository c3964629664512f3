package check

import (
	"math"
	"time"
)

// lag is the maximum time that a controller needs to act on an event after its delivery. Until
// then, the controller may still act on the version before the event. The client-side rate limit
// may delay a request further.
//
// The value is generous. A healthy controller takes milliseconds. A controller with little CPU
// time and thousands of unread events still takes less than one second.
const lag = time.Second

// valueRange is the range from the lowest to the highest of some numbers, or an empty range.
type valueRange struct {
	low, high int  // the lowest and the highest number, inclusive
	valid     bool // false if the range is empty
}

// include extends the range, if necessary, so that the range contains a value, the parameter v.
func (r *valueRange) include(v int) { r.union(valueRange{low: v, high: v, valid: true}) }

// union extends the range so that it contains all values of the other range.
func (r *valueRange) union(other valueRange) {
	switch {
	case !other.valid:
	case !r.valid:
		*r = other
	default:
		r.low, r.high = min(r.low, other.low), max(r.high, other.high)
	}
}

// recentWindow stores the lowest and the highest value that a number had recently. It covers at
// least the last second (lag), and less than the last two seconds. It has two buckets, each for
// a period of length lag. Its size therefore does not depend on how often the number changes.
type recentWindow struct {
	since    time.Duration // when the current bucket began
	current  valueRange    // the values since the current bucket began
	previous valueRange    // the values in the bucket before the current one
	value    valueRange    // the value that the number has now; empty before the first record
}

// record stores that the number has a new value, the parameter v. The parameter at is the time of
// this change.
func (window *recentWindow) record(at time.Duration, v int) {
	window.advance(at)
	window.value = valueRange{low: v, high: v, valid: true}
	window.current.union(window.value)
}

// bounds returns the lowest and the highest recent value. The parameter at is the current time.
func (window *recentWindow) bounds(at time.Duration) valueRange {
	window.advance(at)
	both := window.current
	both.union(window.previous)
	return both
}

// clear forgets all values, including the number's present value. Only later values then determine
// the lowest and the highest value. The check expectations calls it when a process sends a create
// or delete.
func (window *recentWindow) clear() { *window = recentWindow{since: window.since} }

// advance begins a new bucket if the current bucket is at least lag (1 s) long. A bucket contains
// the values of one period. The value at the boundary is in both buckets.
func (window *recentWindow) advance(at time.Duration) {
	switch age := at - window.since; {
	case age < lag:
		return
	case age < 2*lag:
		window.previous, window.since = window.current, window.since+lag
	default:
		window.previous, window.since = window.value, at
	}
	window.current = window.value
}

// rangeSinceIdle stores the lowest and the highest value of a number since the process was last
// idle. A process is idle if it has sent nothing for a while and awaits no response.
//
// The range also includes the values from at least the last second (lag) of the idle period.
// When the process decides on its next request, the number is within this range.
type rangeSinceIdle struct {
	recent    recentWindow
	sinceIdle valueRange // the values since at least lag (1 s) before the end of the last idle period
}

// record stores that the number has a new value, the parameter v. The parameter at is the time of
// this change.
func (values *rangeSinceIdle) record(at time.Duration, v int) {
	values.recent.record(at, v)
	values.sinceIdle.include(v)
}

// becameIdle records the end of a period in which the process was idle (sent nothing for a
// while). The parameter at is the end of this period. becameIdle removes all values from before
// the last one to two seconds.
func (values *rangeSinceIdle) becameIdle(at time.Duration) {
	values.sinceIdle = values.recent.bounds(at)
}

// countSinceIdle counts events, such as lost pods, since the process was last idle. It also counts
// events in at least the last second (lag) of the idle period. A process is idle if it has sent
// nothing for a while and awaits no response.
type countSinceIdle struct {
	since             time.Duration // when the current bucket began
	current, previous int           // number of events in the current bucket, and in the bucket before it
	sinceIdle         int           // number of events since at least lag (1 s) before the end of the last idle period
}

// add counts events. The parameter n is their number, and at is their time. A negative number takes
// back earlier events that should not count, for example because the process itself caused them.
func (c *countSinceIdle) add(at time.Duration, n int) {
	c.advance(at)
	c.current += n
	c.sinceIdle += n
}

// total returns the number of counted events since the process was last idle. It is never negative,
// although add may take back events that were counted before the process was idle.
func (c *countSinceIdle) total() int { return max(0, c.sinceIdle) }

// becameIdle records the end of a period in which the process was idle (sent nothing for a
// while). The parameter at is the end of this period. becameIdle forgets events from before the
// last two buckets. A bucket contains the events of a period of length lag (1 s).
func (c *countSinceIdle) becameIdle(at time.Duration) {
	c.advance(at)
	c.sinceIdle = max(0, c.current+c.previous)
}

// advance begins a new bucket if the current bucket is at least lag (1 s) long. A bucket contains
// the events of one period.
func (c *countSinceIdle) advance(at time.Duration) {
	switch age := at - c.since; {
	case age < lag:
		return
	case age < 2*lag:
		c.previous, c.since = c.current, c.since+lag
	default:
		c.previous, c.since = 0, at
	}
	c.current = 0
}

// cachedVersion is a version of an object, or a value derived from objects. The field since says
// when the version reached the cache.
type cachedVersion[T any] struct {
	since time.Duration // when the cache first contained the version
	value T
}

// keepSince removes versions that were replaced before a given time, the parameter from. It
// returns the version that was current at this time, and all later versions. The slice all is
// sorted by time, oldest first.
func keepSince[T any](all []cachedVersion[T], from time.Duration) []cachedVersion[T] {
	old := 0
	for old+1 < len(all) && all[old+1].since <= from {
		old++
	}
	return all[old:]
}

// decisionWindow is the period in which a process can have decided on its next request for one
// object. Any version that the cache contained in this period may justify the request.
//
// Because of the client-side rate limit, a process may send a request up to batchTime after it
// decided on it; see Settings.batchTime. If the process had no request for the object in flight for
// batchTime, the window begins batchTime before the next request. Otherwise the window keeps its
// beginning. It never begins more than decisionWindowMax (90 s) before the latest request.
type decisionWindow struct {
	callsInFlight int           // number of requests for the object without a response
	lastActivity  time.Duration // when the process last sent a request for the object or got a response to one
	from          time.Duration // when the window begins
}

// decisionWindowMax is the maximum time between the decision on a request and the request itself.
// A request that takes longer has timed out.
const decisionWindowMax = 90 * time.Second

// callSent records that a process (the parameter p) sent a request for the object. The process
// decided on this request within the window, that is, after the time decisionWindow.from.
//
// If no request for the object was in flight for batchTime, callSent moves the start of the window
// forward. It does not do so if client-go may still resend an earlier request.
func (w *decisionWindow) callSent(p *process, at time.Duration) {
	if w.callsInFlight == 0 && at-w.lastActivity >= p.batchTime && !p.clientMayRetry(at) {
		w.from = at - p.batchTime
	}
	w.from = max(w.from, at-decisionWindowMax)
	w.callsInFlight++
	w.lastActivity = at
}

// callAnswered records that the process got the response to a request for the object.
func (w *decisionWindow) callAnswered(at time.Duration) {
	w.callsInFlight--
	w.lastActivity = at
}

// never is a time before all other times. A field has this value as long as the event whose time it
// stores has not happened.
const never = time.Duration(math.MinInt64)
