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
	AllowedBehaviors: []string{"partial-proportional-scaling", "terminating-pods-not-counted", "lost-response", "template-and-replicas-together", "cache-only-decisions", "writes-from-one-snapshot"},
	New:              newMaxSurgeChecker,
}

// maxSurgeChecker: each time a ReplicaSet of a rolling Deployment is made or scaled
// up, what its ReplicaSets ask for together is no more than replicas and maxSurge
// allow, for some way in which the process may have had them in mind.
type maxSurgeChecker struct{ findings }

func newMaxSurgeChecker(Settings) Checker { return &maxSurgeChecker{} }

func (checker *maxSurgeChecker) Observe(m *Model, _ *history.Record) {
	s := checkableScaling(m)
	if s == nil || !s.isRollingUpdate() || !s.scalesUp() {
		return
	}
	checker.exercised++
	most, least := 0, math.MaxInt
	for _, d := range s.deployments {
		most = max(most, d.maxPods())
	}
	for _, sets := range s.replicaSetStates {
		least = min(least, sumOf(sets, specReplicas)-s.replicasBefore(sets)+s.to)
	}
	if least <= most {
		return
	}
	checker.addViolation(func() Evidence {
		return s.evidence(m, fmt.Sprintf("raised ReplicaSet %s to %d, which makes %d", s.name, s.to, least),
			fmt.Sprintf("at most %d replicas over all its ReplicaSets", most))
	})
}
