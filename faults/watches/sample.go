package watches

import (
	"math/rand/v2"
	"time"

	"github.com/kube-gauntlet/gauntlet/faults"
)

// sampleDelay returns random parameters of a watch-delay fault, for a generated scenario.
func sampleDelay(r *rand.Rand, o faults.SampleInput) any {
	most := 1500 * time.Millisecond
	if o.Long {
		most = o.Span
	}
	return &DelayParams{
		EventMatch: EventMatch{Resource: faults.Pick(r, o.Resources...)},
		Delay:      faults.PickTime(r, 50*time.Millisecond, most, 50*time.Millisecond),
	}
}

// sampleStall returns random parameters of a watch-stall fault, for a generated scenario.
func sampleStall(r *rand.Rand, o faults.SampleInput) any {
	return &StallParams{Resource: faults.Pick(r, o.Resources...)}
}

// sampleEnd returns random parameters of a watch-end fault, for a generated scenario.
func sampleEnd(r *rand.Rand, o faults.SampleInput) any {
	p := &EndParams{Resource: faults.Pick(r, o.Resources...), How: faults.Pick(r, endings()...)}
	if r.IntN(2) == 0 {
		p.Blind = faults.PickTime(r, 100*time.Millisecond, min(o.Span/2, blindMax), 50*time.Millisecond)
	}
	if r.IntN(2) == 0 {
		p.Every = faults.PickTime(r, 200*time.Millisecond, time.Second, 100*time.Millisecond)
		p.Times = 1 + r.IntN(4)
	}
	return p
}

// sampleBookmarks returns random parameters of a bookmark-loss fault, for a generated scenario.
func sampleBookmarks(r *rand.Rand, o faults.SampleInput) any {
	return &BookmarksParams{Resource: faults.Pick(r, o.Resources...)}
}

// sampleStale returns random parameters of a stale-list fault, for a generated scenario.
func sampleStale(r *rand.Rand, o faults.SampleInput) any {
	return &StaleParams{Resource: faults.Pick(r, o.Resources...)}
}
