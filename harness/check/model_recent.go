package check

import (
	"math"
	"time"
)

// lag is how long a subject may take to notice what was handed to it, and to
// act on what it noticed. What held within the lag counts as what it knew.
//
// It is generous: a healthy controller takes milliseconds, and one that is
// starved of CPU, with thousands of events in its socket, takes less than this.
const lag = time.Second

// valueRange is the lowest and the highest of some values.
type valueRange struct {
	low, high int
	valid     bool // whether there was a value at all
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

// recentWindow follows a value and tells between which bounds it has been of late:
// for at least the lag, at most twice the lag. It keeps two buckets, each as
// long as the lag, so its size and cost do not depend on how often it changes.
type recentWindow struct {
	since    time.Duration // when the current bucket began
	current  valueRange
	previous valueRange
	value    valueRange // the value in force
}

// record says that the value is v from now on.
func (window *recentWindow) record(at time.Duration, v int) {
	window.advance(at)
	window.value = valueRange{low: v, high: v, valid: true}
	window.current.union(window.value)
}

// bounds returns between which values it has been of late.
func (window *recentWindow) bounds(at time.Duration) valueRange {
	window.advance(at)
	both := window.current
	both.union(window.previous)
	return both
}

// clear forgets every value, the one in force included.
func (window *recentWindow) clear() { *window = recentWindow{since: window.since} }

// advance begins a new bucket when the current one is full. The value in force
// belongs to both.
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

// rangeSinceIdle follows a value and tells between which bounds it has been since
// the subject was last idle, and for the lag before that: within them lies
// whatever the subject may still act upon.
type rangeSinceIdle struct {
	recent    recentWindow
	sinceIdle valueRange
}

func (values *rangeSinceIdle) record(at time.Duration, v int) {
	values.recent.record(at, v)
	values.sinceIdle.include(v)
}

// becameIdle says that the subject was idle until now.
func (values *rangeSinceIdle) becameIdle(at time.Duration) {
	values.sinceIdle = values.recent.bounds(at)
}

// countSinceIdle counts events over the same time.
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

// total is never negative: an event may be taken back after it was forgotten.
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

// cachedVersion is something as a process had it from some time on.
type cachedVersion[T any] struct {
	since time.Duration
	value T
}

// keepSince drops what was replaced by a given time.
func keepSince[T any](all []cachedVersion[T], from time.Duration) []cachedVersion[T] {
	old := 0
	for old+1 < len(all) && all[old+1].since <= from {
		old++
	}
	return all[old:]
}

// decisionWindow is the time from which a process' present decisions about one object
// may date: since it was last idle about it, and for some time before that.
type decisionWindow struct {
	callsInFlight int // calls in flight
	lastActivity  time.Duration
	from          time.Duration
}

// decisionWindowMax bounds the window. A call that takes longer has timed out.
const decisionWindowMax = 90 * time.Second

// callSent moves the window on, if the process was idle about the object.
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

// never is a time before all others.
const never = time.Duration(math.MinInt64)
