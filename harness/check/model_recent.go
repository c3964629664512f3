package check

import (
	"math"
	"time"
)

// lag is the maximum time that a controller needs to act on an event after its delivery.
// During that time, the controller may still act on the version before the event. A delay by
// the client-side rate limit comes on top of lag.
//
// The value is generous. A healthy controller takes milliseconds. A controller with little CPU
// time and thousands of unread events still takes less than one second.
const lag = time.Second

// valueRange is the range from the lowest to the highest of some values.
type valueRange struct {
	low, high int  // inclusive
	valid     bool // false if the range contains no value
}

// include extends the range so that it contains a value.
func (r *valueRange) include(v int) { r.union(valueRange{low: v, high: v, valid: true}) }

// union extends the range so that it contains another range.
func (r *valueRange) union(other valueRange) {
	switch {
	case !other.valid:
	case !r.valid:
		*r = other
	default:
		r.low, r.high = min(r.low, other.low), max(r.high, other.high)
	}
}

// recentWindow stores the lowest and the highest value that a number had recently. It covers
// at least the last lag (1 s), and less than twice that time. It has two buckets of length
// lag, so its size does not depend on how often the number changes.
type recentWindow struct {
	since    time.Duration // when the current bucket began
	current  valueRange    // the values since then
	previous valueRange    // the values in the bucket before
	value    valueRange    // the value that the number has now
}

// record sets the value that the number has from the given time on.
func (window *recentWindow) record(at time.Duration, v int) {
	window.advance(at)
	window.value = valueRange{low: v, high: v, valid: true}
	window.current.union(window.value)
}

// bounds returns the lowest and the highest value of the recent window that ends at the given
// time.
func (window *recentWindow) bounds(at time.Duration) valueRange {
	window.advance(at)
	both := window.current
	both.union(window.previous)
	return both
}

// clear removes all values, including the value that the number has now.
func (window *recentWindow) clear() { *window = recentWindow{since: window.since} }

// advance begins a new bucket if the current one is at least lag long. The value at the
// boundary is in both buckets.
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
// The range also includes the values of at least the last lag (1 s) of the idle time. The
// process decided on a request that it sends now while the number was in this range.
type rangeSinceIdle struct {
	recent    recentWindow
	sinceIdle valueRange // the range that rangeSinceIdle describes
}

// record sets the value that the number has from the given time on.
func (values *rangeSinceIdle) record(at time.Duration, v int) {
	values.recent.record(at, v)
	values.sinceIdle.include(v)
}

// becameIdle records that the process was idle until the given time. It forgets the values
// from before the recent window.
func (values *rangeSinceIdle) becameIdle(at time.Duration) {
	values.sinceIdle = values.recent.bounds(at)
}

// countSinceIdle counts events since the process was last idle. It also counts those in at
// least the last lag (1 s) of the idle time. A process is idle if it has sent nothing for a
// while and awaits no response.
type countSinceIdle struct {
	since             time.Duration // when the current bucket began
	current, previous int           // events in the current bucket, and in the bucket before
	sinceIdle         int           // events since at least lag before the process was last idle
}

// add adds n events. A negative n takes back events that were counted before and turn out to
// have another cause.
func (c *countSinceIdle) add(at time.Duration, n int) {
	c.advance(at)
	c.current += n
	c.sinceIdle += n
}

// total returns the number of events, but never a negative number. A caller may subtract an
// event that countSinceIdle has already forgotten.
func (c *countSinceIdle) total() int { return max(0, c.sinceIdle) }

// becameIdle records that the process was idle until the given time. Events before the last
// two buckets are forgotten.
func (c *countSinceIdle) becameIdle(at time.Duration) {
	c.advance(at)
	c.sinceIdle = max(0, c.current+c.previous)
}

// advance begins a new bucket if the current one is at least lag long.
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

// cachedVersion is a version of an object, or of something that the model derives from
// objects.
type cachedVersion[T any] struct {
	since time.Duration // when the cache first contained the version
	value T
}

// keepSince returns the version that was current at the time from, and all later versions. The
// slice is sorted by time, oldest first.
func keepSince[T any](all []cachedVersion[T], from time.Duration) []cachedVersion[T] {
	old := 0
	for old+1 < len(all) && all[old+1].since <= from {
		old++
	}
	return all[old:]
}

// decisionWindow is the recent window of one object in one process. The process decided on a
// request that it sends for the object now within this window.
//
// If there was no request for the object for a while, the window begins batchTime before the
// next one. It is at most decisionWindowMax long.
type decisionWindow struct {
	callsInFlight int           // requests for the object without a response
	lastActivity  time.Duration // when the process last sent such a request or got its response
	from          time.Duration // when the window begins
}

// decisionWindowMax is the maximum length of a decisionWindow. A request that takes longer
// than this has timed out.
const decisionWindowMax = 90 * time.Second

// callSent records that the process sent a request for the object. It moves the start of the
// window forward if no request for the object was in flight for at least batchTime.
func (w *decisionWindow) callSent(p *process, at time.Duration) {
	if w.callsInFlight == 0 && at-w.lastActivity >= p.batchTime && !p.clientMayRetry(at) {
		w.from = at - p.batchTime
	}
	w.from = max(w.from, at-decisionWindowMax)
	w.callsInFlight++
	w.lastActivity = at
}

// callAnswered records that a request for the object got its response.
func (w *decisionWindow) callAnswered(at time.Duration) {
	w.callsInFlight--
	w.lastActivity = at
}

// never is a time before all other times. It means that an event has not happened yet.
const never = time.Duration(math.MinInt64)
