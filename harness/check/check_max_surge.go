package check

import (
	"fmt"
	"math"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// maxSurgeCheck is the row of max-surge in All.
var maxSurgeCheck = Check{
	ID:               "max-surge",
	Guarantee:        "By the controller's own hand the ReplicaSets of a rolling Deployment ask for no more than its replicas and maxSurge together, by what it knew of them.",
	Contract:         "Deployment 8, 9, 11",
	Property:         Safety,
	AllowedBehaviors: []int{6, 10, 12, 14, 37, 39},
	New:              newMaxSurge,
}

// maxSurgeJudge: each time a ReplicaSet of a rolling Deployment is made or scaled
// up, what its ReplicaSets ask for together is no more than replicas and maxSurge
// allow, for some way in which the process may have had them in mind.
type maxSurgeJudge struct{ findings }

func newMaxSurge(Settings) Checker { return &maxSurgeJudge{} }

func (j *maxSurgeJudge) Observe(m *Model, _ *history.Record) {
	s := judgeableScaling(m)
	if s == nil || !s.rolling() || !s.up() {
		return
	}
	j.tested++
	most, least := 0, math.MaxInt
	for _, d := range s.deployments {
		most = max(most, d.mostPods())
	}
	for _, sets := range s.states {
		least = min(least, total(sets, asked)-s.before(sets)+s.to)
	}
	if least <= most {
		return
	}
	j.violate(func() Evidence {
		return s.evidence(m, fmt.Sprintf("raised ReplicaSet %s to %d, which makes %d", s.name, s.to, least),
			fmt.Sprintf("at most %d replicas over all its ReplicaSets", most))
	})
}
