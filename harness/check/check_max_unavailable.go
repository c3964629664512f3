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
	Guarantee:        "During a rolling update, scale-downs leave at least replicas - maxUnavailable pods available, according to a cached version that the controller may have acted on. The scale-down of an old ReplicaSet removes at most as many pods as all ReplicaSets have beyond replicas - maxUnavailable and the unavailable pods of the new ReplicaSet.",
	Contract:         "Deployment 8, 9",
	Property:         Safety,
	Scope:            contractOf(kube.RollsOut),
	ExercisedWhen:    "A rolling update scales a ReplicaSet down so far that it loses available pods. Or it scales an old one down, and no ReplicaSet has more available pods than spec.replicas.",
	AllowedBehaviors: []string{"external-disruptions", "template-and-replicas-together", "undeletable-pods", "writes-from-one-snapshot"},
	New:              newMaxUnavailableChecker,
}

// maxUnavailableChecker reports scale-downs that leave fewer than replicas - maxUnavailable pods
// available, or that remove too many unavailable pods.
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
	if checker.checkAvailable(m, s) {
		checker.checkBudget(m, s)
	}
}

// checkAvailable reports a scale-down that leaves too few pods available. It returns true if there is no
// such violation.
func (checker *maxUnavailableChecker) checkAvailable(m *Model, s *scaling) bool {
	highest, believed, beyond := math.MinInt, math.MinInt, math.MinInt
	for _, sets := range s.replicaSetStates {
		set := findByName(sets, s.name)
		if set == nil || min(availableReplicas(set), s.to) >= min(availableReplicas(set), set.Replicas) {
			return true // the scale-down removes no available pod
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
		return true
	}
	describe := func() Evidence {
		return s.evidence(m, fmt.Sprintf("scaled ReplicaSet %s down to %d, which leaves %d pods available", s.name, s.to, highest),
			fmt.Sprintf("at least %d pods available (replicas - maxUnavailable)", limit))
	}
	if beyond >= limit || believed >= limit && s.mayRemoveUnavailable() {
		checker.addKnownViolation(staleAvailability, describe)
	} else {
		checker.addViolation(describe)
	}
	return false
}

// checkBudget reports the scale-down of an old ReplicaSet that removes more pods than the budget permits.
// The budget is the sum of spec.replicas - minAvailable - the unavailable pods of the new ReplicaSet. It
// limits how many unavailable pods of old ReplicaSets a rolling update removes (contract Deployment 9).
//
// It skips ReplicaSets with more available pods than spec.replicas (allowed behavior undeletable-pods).
func (checker *maxUnavailableChecker) checkBudget(m *Model, s *scaling) {
	budget, removed := math.MinInt, math.MaxInt
	for _, sets := range s.replicaSetStates {
		set := findByName(sets, s.name)
		excess := slices.ContainsFunc(sets, func(set *objects.Owner) bool { return availableReplicas(set) > set.Replicas })
		if set == nil || set.Replicas <= s.to || excess {
			return
		}
		removed = min(removed, set.Replicas-s.to)
		for _, d := range s.deployments {
			current, starting := oldestOf(sets, d.Template), 0
			if current == set {
				return
			}
			if current != nil {
				starting = max(0, current.Replicas-availableReplicas(current))
			}
			budget = max(budget, sumOf(sets, specReplicas)-d.MinAvailable()-starting)
		}
	}
	checker.exercised++
	if removed <= budget || removed == math.MaxInt {
		return
	}
	checker.addViolation(func() Evidence {
		return s.evidence(m, fmt.Sprintf("scaled old ReplicaSet %s down by %d to %d", s.name, removed, s.to),
			fmt.Sprintf("a scale-down by at most %d (the sum of spec.replicas - replicas + maxUnavailable - the unavailable pods of the new ReplicaSet)", max(0, budget)))
	})
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
