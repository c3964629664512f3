package pods

import (
	"math/rand/v2"
	"time"

	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/faults"
)

// sampledActions are the actions in generated scenarios. They do not include collapse,
// because some upstream controllers are known not to detect it.
var sampledActions = []string{actionDelete, actionEvict, actionFail, actionSucceed, actionUnready, actionRestart, actionLinger}

func sampleChurn(r *rand.Rand, _ faults.SampleInput) any {
	p := &ChurnParams{
		Action: faults.Pick(r, sampledActions...),
		Every:  faults.PickTime(r, 100*time.Millisecond, 800*time.Millisecond, 50*time.Millisecond),
		Times:  1 + r.IntN(15),
	}
	switch p.Action {
	case actionDelete:
		if r.IntN(2) == 0 {
			p.GracePeriodSeconds = ptr.To(int64(r.IntN(2)))
		}
	case actionUnready:
		down := faults.PickTime(r, 100*time.Millisecond, time.Second, 100*time.Millisecond)
		p.Downtime = &down
	}
	return p
}

func sampleTargets(r *rand.Rand) Targets {
	return Targets{Every: faults.PickTime(r, 100*time.Millisecond, 800*time.Millisecond, 50*time.Millisecond), Times: 1 + r.IntN(10)}
}

func sampleRelabel(r *rand.Rand, _ faults.SampleInput) any {
	return &RelabelParams{Downtime: faults.PickTime(r, 100*time.Millisecond, time.Second, 100*time.Millisecond), Targets: sampleTargets(r)}
}
