package check

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// moment is a value that was noted at a time.
type moment struct {
	at    time.Duration
	value int
}

// TestLatelyBounds: the bounds hold every value that was in force within the
// lag, and none that ceased to be in force more than twice the lag ago.
func TestLatelyBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l lately
		var past []moment
		now := time.Duration(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now += time.Duration(rapid.IntRange(0, 900).Draw(t, "pause")) * time.Millisecond
			if rapid.Bool().Draw(t, "changes") {
				past = append(past, moment{now, rapid.IntRange(-20, 20).Draw(t, "value")})
				l.note(now, past[len(past)-1].value)
			}
			within, ever := inForce(past, now, lag), inForce(past, now, 2*lag)
			got := l.bounds(now)
			if within.some && (!got.some || got.low > within.low || got.high < within.high) {
				t.Fatalf("at %v: bounds %+v leave out some of %+v", now, got, within)
			}
			if got.some && (got.low < ever.low || got.high > ever.high) {
				t.Fatalf("at %v: bounds %+v remember more than %+v", now, got, ever)
			}
		}
	})
}

// inForce is the extent of the values in force at some time within the span
// before now.
func inForce(past []moment, now, span time.Duration) (e extent) {
	for i, m := range past {
		if i == len(past)-1 || past[i+1].at >= now-span {
			e.include(m.value)
		}
	}
	return e
}

func TestLatelyClear(t *testing.T) {
	var l lately
	l.note(0, 5)
	l.clear()
	if got := l.bounds(lag); got.some {
		t.Errorf("after clear: got %+v, want no value", got)
	}
}

func TestSinceIdle(t *testing.T) {
	var s sinceIdle
	var c countSinceIdle
	for i := range 100 {
		s.note(time.Duration(i)*lag, i)
		c.add(time.Duration(i)*lag, 1)
	}
	if s.whole != (extent{low: 0, high: 99, some: true}) || c.total() != 100 {
		t.Errorf("a long busy time: got %+v and %d", s.whole, c.total())
	}
	s.idle(99 * lag)
	c.idle(99 * lag)
	if s.whole.low < 97 || s.whole.high != 99 || c.total() > 3 || c.total() < 1 {
		t.Errorf("after being idle: got %+v and %d, want only the last few", s.whole, c.total())
	}
}
