package processes

import (
	"math/rand/v2"
	"time"

	"github.com/kube-gauntlet/gauntlet/faults"
)

// sampleRestart returns random parameters of a restart fault, for a generated scenario. The
// downtime is at most the time from the injection until the fault is healed.
func sampleRestart(r *rand.Rand, o faults.SampleInput) any {
	return &RestartParams{
		How:      faults.Pick(r, howNames...),
		Replica:  faults.Pick(r, replicas...),
		Downtime: faults.PickTime(r, 100*time.Millisecond, downtimeMax(o), 100*time.Millisecond),
	}
}

// downtimeMax returns the longest downtime of a replica in a randomly generated scenario. The
// result is o.Span, the time until the fault is healed. Unless o.Long is true, the result is at
// most 1 s.
func downtimeMax(o faults.SampleInput) time.Duration {
	if o.Long {
		return o.Span
	}
	return min(o.Span, time.Second)
}

// sampleCrash returns random parameters of a crash fault, for a generated scenario.
func sampleCrash(r *rand.Rand, o faults.SampleInput) any {
	return &CrashParams{Downtime: faults.PickTime(r, 100*time.Millisecond, downtimeMax(o), 100*time.Millisecond)}
}

// sampleFreeze returns random parameters of a freeze fault, for a generated scenario.
func sampleFreeze(r *rand.Rand, _ faults.SampleInput) any {
	return &FreezeParams{Replica: faults.Pick(r, replicas...)}
}
