package processes

import (
	"math/rand/v2"
	"time"

	"github.com/kube-gauntlet/gauntlet/faults"
)

// sampleRestart draws the parameters of a generated scenario, with a downtime that is
// over before Heal.
func sampleRestart(r *rand.Rand, o faults.SampleInput) any {
	return &RestartParams{
		How:      faults.Pick(r, howNames...),
		Replica:  faults.Pick(r, replicas...),
		Downtime: faults.PickTime(r, 100*time.Millisecond, min(o.Span, time.Second), 100*time.Millisecond),
	}
}

func sampleCrash(r *rand.Rand, o faults.SampleInput) any {
	return &CrashParams{Downtime: faults.PickTime(r, 100*time.Millisecond, min(o.Span, time.Second), 100*time.Millisecond)}
}

func sampleFreeze(r *rand.Rand, _ faults.SampleInput) any {
	return &FreezeParams{Replica: faults.Pick(r, replicas...)}
}
