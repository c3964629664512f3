package check

import (
	"math"
	"time"
)

// lag is the time that a controller may need to process a delivered event, and to act on
// it. The controller may therefore have used any value that was current within lag.
//
// The value is generous. A healthy controller takes milliseconds. A controller with little
// CPU time and thousands of unread events still takes less than lag.
const lag = time.Second

// valueRange is the range between the lowest and the highest of some values.
type valueRange struct {
	low, high int
	valid     bool // false if there were no values
}

func (r *valueRange) include(v int) { r.union(valueRange{low: v, high: v, valid: true}) }

func (r *valueRange) union(other valueRange) {
	switch {
	case !other.valid:
	case !r.valid:
		*r = other
	default:
		r.low, r.high = min(r.low, other.low), max(r.high, other.high)
	}
}

// recentWindow tracks the lowest and the highest value within a recent time, which is
// between lag and twice lag. It has two buckets of length lag, so its size and cost do not
// depend on the number of changes.
type recentWindow struct {
	since    time.Duration // when the current bucket began
	current  valueRange
	previous valueRange
	value    valueRange // the current value
}

// record sets the current value.
func (window *recentWindow) record(at time.Duration, v int) {
	window.advance(at)
	window.value = valueRange{low: v, high: v, valid: true}
	window.current.union(window.value)
}

// bounds returns the bounds of the value in the recent window.
func (window *recentWindow) bounds(at time.Duration) valueRange {
	window.advance(at)
	both := window.current
	both.union(window.previous)
	return both
}

// clear removes all values, including the current one.
func (window *recentWindow) clear() { *window = recentWindow{since: window.since} }

// advance begins a new bucket when the current one is full. The current value belongs to
// both buckets.
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

// rangeSinceIdle tracks the lowest and the highest value since lag before the process was
// last idle. Every value on which the process may still act is between these two values.
type rangeSinceIdle struct {
	recent    recentWindow
	sinceIdle valueRange
}

func (values *rangeSinceIdle) record(at time.Duration, v int) {
	values.recent.record(at, v)
	values.sinceIdle.include(v)
}

// becameIdle records that the process was idle until now.
func (values *rangeSinceIdle) becameIdle(at time.Duration) {
	values.sinceIdle = values.recent.bounds(at)
}

// countSinceIdle counts events over the same time as rangeSinceIdle.
type countSinceIdle struct {
	since             time.Duration
	current, previous int
	sinceIdle         int
}

func (c *countSinceIdle) add(at time.Duration, n int) {
	c.advance(at)
	c.current += n
	c.sinceIdle += n
}

// total returns the number of events. It returns 0 instead of a negative number, because a
// caller may subtract an event that is no longer in the window.
func (c *countSinceIdle) total() int { return max(0, c.sinceIdle) }

func (c *countSinceIdle) becameIdle(at time.Duration) {
	c.advance(at)
	c.sinceIdle = max(0, c.current+c.previous)
}

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

// cachedVersion is a value with the time since which it was cached.
type cachedVersion[T any] struct {
	since time.Duration
	value T
}

// keepSince removes the versions that a newer version had already replaced at the given
// time. The version that was current at that time remains.
func keepSince[T any](all []cachedVersion[T], from time.Duration) []cachedVersion[T] {
	old := 0
	for old+1 < len(all) && all[old+1].since <= from {
		old++
	}
	return all[old:]
}

// decisionWindow is the recent window of one object: the time from which decisions for the
// object may date. It begins batchTime before the process last had nothing to do for the
// object.
type decisionWindow struct {
	callsInFlight int
	lastActivity  time.Duration
	from          time.Duration
}

// decisionWindowMax is the maximum length of a decisionWindow. It suffices because a
// request that takes longer has timed out.
const decisionWindowMax = 90 * time.Second

// callSent records that the process sent a call for the object. If the process was idle for
// the object before, the window now begins batchTime before the call.
func (w *decisionWindow) callSent(p *process, at time.Duration) {
	if w.callsInFlight == 0 && at-w.lastActivity >= p.batchTime && !p.clientMayRetry(at) {
		w.from = at - p.batchTime
	}
	w.from = max(w.from, at-decisionWindowMax)
	w.callsInFlight++
	w.lastActivity = at
}

func (w *decisionWindow) callAnswered(at time.Duration) {
	w.callsInFlight--
	w.lastActivity = at
}

// never is a time before all other times. It stands for an event that has not happened.
const never = time.Duration(math.MinInt64)
