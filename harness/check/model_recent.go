package check

import (
	"math"
	"time"
)

// shown is something as a process had it from some time on.
type shown[T any] struct {
	since time.Duration
	value T
}

// recent drops what was replaced by a given time.
func recent[T any](all []shown[T], from time.Duration) []shown[T] {
	old := 0
	for old+1 < len(all) && all[old+1].since <= from {
		old++
	}
	return all[old:]
}

// window is the time from which a process' present decisions about one object
// may date: since it was last idle about it, and for some time before that.
type window struct {
	working int // calls in flight
	lastAt  time.Duration
	from    time.Duration
}

// memory bounds the window. A call that takes longer has timed out.
const memory = 90 * time.Second

// send moves the window on, if the process was idle about the object.
func (w *window) send(p *process, at time.Duration) {
	if w.working == 0 && at-w.lastAt >= p.drain && !p.napping(at) {
		w.from = at - p.drain
	}
	w.from = max(w.from, at-memory)
	w.working++
	w.lastAt = at
}

func (w *window) settle(at time.Duration) {
	w.working--
	w.lastAt = at
}

// never is a time before all others.
const never = time.Duration(math.MinInt64)

// lag is how long a subject may take to notice what was handed to it, and to
// act on what it noticed. What held within the lag counts as what it knew.
//
// It is generous: a healthy controller takes milliseconds, and one that is
// starved of CPU, with thousands of events in its socket, takes less than this.
const lag = time.Second

// extent is the lowest and the highest of some values.
type extent struct {
	low, high int
	some      bool // whether there was a value at all
}

func (e *extent) include(v int) { e.join(extent{low: v, high: v, some: true}) }

func (e *extent) join(other extent) {
	switch {
	case !other.some:
	case !e.some:
		*e = other
	default:
		e.low, e.high = min(e.low, other.low), max(e.high, other.high)
	}
}

// lately follows a value and tells between which bounds it has been of late:
// for at least the lag, at most twice the lag. It keeps two buckets, each as
// long as the lag, so its size and cost do not depend on how often it changes.
type lately struct {
	since   time.Duration // when the current bucket began
	current extent
	former  extent
	value   extent // the value in force
}

// note says that the value is v from now on.
func (l *lately) note(at time.Duration, v int) {
	l.roll(at)
	l.value = extent{low: v, high: v, some: true}
	l.current.join(l.value)
}

// bounds returns between which values it has been of late.
func (l *lately) bounds(at time.Duration) extent {
	l.roll(at)
	both := l.current
	both.join(l.former)
	return both
}

// clear forgets every value, the one in force included.
func (l *lately) clear() { *l = lately{since: l.since} }

// roll begins a new bucket when the current one is full. The value in force
// belongs to both.
func (l *lately) roll(at time.Duration) {
	switch age := at - l.since; {
	case age < lag:
		return
	case age < 2*lag:
		l.former, l.since = l.current, l.since+lag
	default:
		l.former, l.since = l.value, at
	}
	l.current = l.value
}

// sinceIdle follows a value and tells between which bounds it has been since
// the subject was last idle, and for the lag before that: within them lies
// whatever the subject may still act upon.
type sinceIdle struct {
	recent lately
	whole  extent
}

func (s *sinceIdle) note(at time.Duration, v int) {
	s.recent.note(at, v)
	s.whole.include(v)
}

// idle says that the subject was idle until now.
func (s *sinceIdle) idle(at time.Duration) { s.whole = s.recent.bounds(at) }

// countSinceIdle counts events over the same time.
type countSinceIdle struct {
	since           time.Duration
	current, former int
	whole           int
}

func (c *countSinceIdle) add(at time.Duration, n int) {
	c.roll(at)
	c.current += n
	c.whole += n
}

// total is never negative: an event may be taken back after it was forgotten.
func (c *countSinceIdle) total() int { return max(0, c.whole) }

func (c *countSinceIdle) idle(at time.Duration) {
	c.roll(at)
	c.whole = max(0, c.current+c.former)
}

func (c *countSinceIdle) roll(at time.Duration) {
	switch age := at - c.since; {
	case age < lag:
		return
	case age < 2*lag:
		c.former, c.since = c.current, c.since+lag
	default:
		c.former, c.since = 0, at
	}
	c.current = 0
}
