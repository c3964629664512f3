package watches

import (
	"math/rand/v2"
	"time"

	"github.com/kube-gauntlet/gauntlet/faults"
)

func sampleDelay(r *rand.Rand, o faults.SampleInput) any {
	return &DelayParams{
		Resource: faults.Pick(r, o.Resources...),
		Delay:    faults.PickTime(r, 50*time.Millisecond, 1500*time.Millisecond, 50*time.Millisecond),
	}
}

func sampleStall(r *rand.Rand, o faults.SampleInput) any {
	return &StallParams{Resource: faults.Pick(r, o.Resources...)}
}

func sampleEnd(r *rand.Rand, o faults.SampleInput) any {
	p := &EndParams{Resource: faults.Pick(r, o.Resources...), How: faults.Pick(r, endings()...)}
	if r.IntN(2) == 0 {
		p.Blind = faults.PickTime(r, 100*time.Millisecond, o.Span/2, 50*time.Millisecond)
	}
	if r.IntN(2) == 0 {
		p.Every = faults.PickTime(r, 200*time.Millisecond, time.Second, 100*time.Millisecond)
		p.Times = 1 + r.IntN(4)
	}
	return p
}

func sampleBookmarks(r *rand.Rand, o faults.SampleInput) any {
	return &BookmarksParams{Resource: faults.Pick(r, o.Resources...)}
}

func sampleStale(r *rand.Rand, o faults.SampleInput) any {
	return &StaleParams{Resource: faults.Pick(r, o.Resources...)}
}
