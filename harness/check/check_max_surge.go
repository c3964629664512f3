package check

import (
	"fmt"
	"math"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// maxSurgeCheck demands that a rolling update keeps the sum of spec.replicas of all ReplicaSets
// within replicas + maxSurge. It examines each create and each scale-up of a ReplicaSet whose
// Deployment has the strategy RollingUpdate.
//
// It skips a request if the cache of the process does not contain the Deployment or its
// ReplicaSets.
var maxSurgeCheck = Check{
	ID:               "max-surge",
	Guarantee:        "During a rolling update, creates and scale-ups of ReplicaSets keep the sum of their spec.replicas within replicas + maxSurge, according to a cached version that the controller may have acted on.",
	Contract:         "Deployment 8, 9, 11",
	Property:         Safety,
	Scope:            contractOf(kube.RollsOut),
	ExercisedWhen:    "The subject creates or scales up a ReplicaSet of a Deployment that has the strategy RollingUpdate.",
	AllowedBehaviors: []string{"partial-proportional-scaling", "terminating-pods-not-counted", "lost-response", "template-and-replicas-together", "cache-only-decisions", "writes-from-one-snapshot"},
	New:              newMaxSurgeChecker,
}

// maxSurgeChecker reports a create or scale-up that raises the sum of all ReplicaSets'
// spec.replicas above replicas + maxSurge.
//
// The process may have acted on any of several cached versions. The checker uses the versions with
// the lowest sum and the highest limit. It therefore reports a write only if no combination of
// these versions allows the write.
//
// A violation in a proportional scale-down may be the known upstream issue proportional-growth.
type maxSurgeChecker struct{ findings }

func newMaxSurgeChecker(s Settings) Checker {
	return &maxSurgeChecker{findings{upstream: s.Upstream}}
}

func (checker *maxSurgeChecker) Observe(m *Model, _ *history.Record) {
	s := checkableScaling(m)
	if s == nil || !s.isRollingUpdate() || !s.scalesUp() {
		return
	}
	checker.exercised++
	limit, lowest := 0, math.MaxInt
	for _, d := range s.deployments {
		limit = max(limit, d.MaxPods())
	}
	for _, sets := range s.replicaSetStates {
		lowest = min(lowest, sumOf(sets, specReplicas)-s.replicasBefore(sets)+s.to)
	}
	if lowest <= limit {
		return
	}
	describe := func() Evidence {
		return s.evidence(m, fmt.Sprintf("scaled ReplicaSet %s up to %d, for a total of %d replicas", s.name, s.to, lowest),
			fmt.Sprintf("at most %d replicas in all ReplicaSets of the Deployment (replicas + maxSurge)", limit))
	}
	if s.growsInScaleDown() {
		checker.addKnownViolation(proportionalGrowth, describe)
		return
	}
	checker.addViolation(describe)
}

// growsInScaleDown reports whether the process scaled the ReplicaSet up to its share in a
// proportional scale-down. In such a scale-down, all ReplicaSets together have more replicas than
// allowed.
func (s *scaling) growsInScaleDown() bool {
	for _, d := range s.deployments {
		for _, sets := range s.replicaSetStates {
			set := findByName(sets, s.name)
			if set != nil && scalingPending(d, sets) && sumOf(sets, specReplicas) > d.MaxPods() && s.to > set.Replicas && s.to <= proportionalShare(d, set, d.MaxPods()) {
				return true
			}
		}
	}
	return false
}
