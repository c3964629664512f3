package check

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// valueAt is a value, and the time when it was recorded.
type valueAt struct {
	at    time.Duration
	value int
}

// TestRecentWindowBounds requires that the bounds of a recentWindow contain every value of the
// last second (lag). They must contain no value that was replaced more than two seconds ago.
func TestRecentWindowBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var window recentWindow
		var past []valueAt
		now := time.Duration(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now += time.Duration(rapid.IntRange(0, 900).Draw(t, "pause")) * time.Millisecond
			if rapid.Bool().Draw(t, "changes") {
				past = append(past, valueAt{now, rapid.IntRange(-20, 20).Draw(t, "value")})
				window.record(now, past[len(past)-1].value)
			}
			within, ever := inForce(past, now, lag), inForce(past, now, 2*lag)
			got := window.bounds(now)
			if within.valid && (!got.valid || got.low > within.low || got.high < within.high) {
				t.Fatalf("at %v: bounds %+v do not contain %+v", now, got, within)
			}
			if got.valid && (got.low < ever.low || got.high > ever.high) {
				t.Fatalf("at %v: bounds %+v exceed %+v", now, got, ever)
			}
		}
	})
}

// inForce returns the range of the values that applied at any time from now-span to now.
func inForce(past []valueAt, now, span time.Duration) (r valueRange) {
	for i, m := range past {
		if i == len(past)-1 || past[i+1].at >= now-span {
			r.include(m.value)
		}
	}
	return r
}

func TestRecentWindowClear(t *testing.T) {
	var window recentWindow
	window.record(0, 5)
	window.clear()
	if got := window.bounds(lag); got.valid {
		t.Errorf("after clear: got %+v, want no value", got)
	}
}

func TestRangeSinceIdle(t *testing.T) {
	var values rangeSinceIdle
	var c countSinceIdle
	for i := range 100 {
		values.record(time.Duration(i)*lag, i)
		c.add(time.Duration(i)*lag, 1)
	}
	if values.sinceIdle != (valueRange{low: 0, high: 99, valid: true}) || c.total() != 100 {
		t.Errorf("without an idle period: got %+v and %d", values.sinceIdle, c.total())
	}
	values.becameIdle(99 * lag)
	c.becameIdle(99 * lag)
	if values.sinceIdle.low < 97 || values.sinceIdle.high != 99 || c.total() > 3 || c.total() < 1 {
		t.Errorf("after being idle: got %+v and %d, want only the values within lag", values.sinceIdle, c.total())
	}
}
