package check

import (
	"fmt"
	"math"
	"slices"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// maxUnavailableCheck demands that a rolling update leaves at least replicas - maxUnavailable pods
// available. It examines each scale-down of a ReplicaSet in which a rolling update removes
// available pods.
//
// It skips a Deployment that may be paused or being scaled, because proportional scaling does not
// obey maxUnavailable.
var maxUnavailableCheck = Check{
	ID:               "max-unavailable",
	Guarantee:        "During a rolling update, scale-downs leave at least replicas - maxUnavailable pods available, according to a cached version that the controller may have acted on.",
	Contract:         "Deployment 8, 9",
	Property:         Safety,
	Scope:            contractOf(kube.RollsOut),
	ExercisedWhen:    "A rolling update scales a ReplicaSet down so far that it loses available pods.",
	AllowedBehaviors: []string{"external-disruptions", "template-and-replicas-together", "undeletable-pods", "writes-from-one-snapshot"},
	New:              newMaxUnavailableChecker,
}

// maxUnavailableChecker reports scale-downs that leave fewer than replicas - maxUnavailable pods
// available.
//
// The process may have acted on any of several cached versions. The checker uses the versions with
// the most available pods and the lowest limit. It therefore reports a write only if no combination
// of these versions allows the write.
//
// A ReplicaSet may have more available pods than spec.replicas. The pods beyond spec.replicas are
// about to be deleted, so they do not count. If spec.replicas is 0, all available pods count (allowed
// behavior undeletable-pods). Of the ReplicaSet that is scaled down, at most the new spec.replicas
// count.
//
// Known upstream issue stale-availability: the controller has scaled a ReplicaSet down. Watch events of
// pods are late, so status.availableReplicas still counts the pods that this scale-down removes. The
// controller takes these pods for available ones that remain, and scales another ReplicaSet down. It
// does so with the same ReplicaSet in a sync that first removes the unavailable pods of another old
// ReplicaSet.
type maxUnavailableChecker struct{ findings }

func newMaxUnavailableChecker(s Settings) Checker {
	return &maxUnavailableChecker{findings{upstream: s.Upstream}}
}

func (checker *maxUnavailableChecker) Observe(m *Model, _ *history.Record) {
	s := checkableScaling(m)
	if s == nil || !s.isRollingUpdate() || s.creates || s.mayBePending() {
		return
	}
	highest, believed, beyond := math.MinInt, math.MinInt, math.MinInt
	for _, sets := range s.replicaSetStates {
		set := findByName(sets, s.name)
		if set == nil || min(availableReplicas(set), s.to) >= min(availableReplicas(set), set.Replicas) {
			return // the scale-down removes no available pod
		}
		all, remain := sumOf(sets, availableReplicas), min(availableReplicas(set), s.to)
		highest = max(highest, sumOf(sets, lastingPods)-lastingPods(set)+remain)
		beyond = max(beyond, all-availableReplicas(set)+remain)
		if availableReplicas(set) > set.Replicas {
			believed = max(believed, all-(set.Replicas-s.to))
		}
	}
	checker.exercised++
	limit := math.MaxInt
	for _, d := range s.deployments {
		limit = min(limit, d.MinAvailable())
	}
	if highest >= limit {
		return
	}
	describe := func() Evidence {
		return s.evidence(m, fmt.Sprintf("scaled ReplicaSet %s down to %d, which leaves %d pods available", s.name, s.to, highest),
			fmt.Sprintf("at least %d pods available (replicas - maxUnavailable)", limit))
	}
	if beyond >= limit || believed >= limit && s.mayRemoveUnavailable() {
		checker.addKnownViolation(staleAvailability, describe)
		return
	}
	checker.addViolation(describe)
}

// lastingPods returns how many available pods of a ReplicaSet no earlier scale-down removes; see
// [maxUnavailableChecker].
func lastingPods(set *objects.Owner) int {
	if set.Replicas == 0 {
		return availableReplicas(set)
	}
	return min(availableReplicas(set), set.Replicas)
}

// mayRemoveUnavailable reports whether another old ReplicaSet of the Deployment may have had pods
// that were not available. A process removes such pods before it scales down ReplicaSets with
// available pods.
func (s *scaling) mayRemoveUnavailable() bool {
	newest := s.deployments[len(s.deployments)-1]
	return slices.ContainsFunc(s.replicaSetStates, func(sets []*objects.Owner) bool {
		return slices.ContainsFunc(sets, func(set *objects.Owner) bool {
			return set.Name != s.name && !set.Template.Same(newest.Template) && availableReplicas(set) < set.Replicas
		})
	})
}
