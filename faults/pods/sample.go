package pods

import (
	"math/rand/v2"
	"time"

	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/faults"
)

// sampledActions lists the actions of pod-churn in generated scenarios. It omits collapse, which
// makes a pod Failed but leaves the pod ready. Some upstream controllers do not react to such a
// pod.
var sampledActions = []string{actionDelete, actionEvict, actionFail, actionSucceed, actionUnready, actionRestart, actionLinger}

// sampleChurn returns random parameters of a pod-churn fault, for a generated scenario.
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

// sampleTargets returns a random interval and a random number of actions, for a fault in a
// generated scenario. The field Selector of the result is empty, which selects all pods of the
// namespace.
func sampleTargets(r *rand.Rand) Targets {
	return Targets{Every: faults.PickTime(r, 100*time.Millisecond, 800*time.Millisecond, 50*time.Millisecond), Times: 1 + r.IntN(10)}
}

// sampleRelabel returns random parameters of a pod-relabel fault, for a generated scenario.
func sampleRelabel(r *rand.Rand, _ faults.SampleInput) any {
	return &RelabelParams{Downtime: faults.PickTime(r, 100*time.Millisecond, time.Second, 100*time.Millisecond), Targets: sampleTargets(r)}
}
