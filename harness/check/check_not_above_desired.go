package check

import (
	"fmt"
	"slices"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// notAboveDesiredCheck demands that no create of a pod raises an owner's active pods above
// spec.replicas. It examines each create of a pod for a ReplicaSet or ReplicationController.
//
// It skips a create for an owner that was never in the cache of the process.
var notAboveDesiredCheck = Check{
	ID:               "not-above-desired",
	Guarantee:        "A controller never creates a pod that brings the active pods of an owner above spec.replicas. The count includes the pods in its cache, and its own creates and adoptions that it has not yet observed.",
	Contract:         "ReplicaSet 7, 8",
	Property:         Safety,
	Scope:            contractOf(kube.OwnsPods),
	ExercisedWhen:    "The subject creates a pod for a ReplicaSet or ReplicationController that was in its cache.",
	AllowedBehaviors: []string{"expired-expectations", "terminating-pods-not-counted", "lost-response", "client-retries", "create-after-deletion"},
	New:              newNotAboveDesiredChecker,
}

// notAboveDesiredChecker reports a create of a pod after which the owner has more than
// spec.replicas active pods.
//
// At each create, the checker adds up the cached pods and the creates whose effect the process
// has not observed. The sum must not exceed the highest spec.replicas that the cache contained
// since the process was last idle. A process is idle if it has sent nothing for a while and
// awaits no response.
//
// The sum does not include pods that the owner gained since the process was idle, but that this
// process did not create or adopt. Examples are pods that a former leader created, and pods of creates
// without a response. The process may have decided on the create before it received the event of
// such a pod.
//
// A successful create counts until the process observes its pod, however late the watch is. A
// ReplicaSet controller waits until it has observed its own writes (contract ReplicaSet 1).
// Upstream's ReplicationController controller lacks the trait reads-own-writes, and does not
// wait (known upstream issue late-pods).
type notAboveDesiredChecker struct{ findings }

func newNotAboveDesiredChecker(s Settings) Checker {
	return &notAboveDesiredChecker{findings{upstream: s.Upstream}}
}

func (checker *notAboveDesiredChecker) Observe(m *Model, _ *history.Record) {
	c := m.sent
	if c == nil || c.verb != callCreatePod || !c.ownerState.everCached() {
		return
	}
	checker.exercised++
	state := c.ownerState
	desired := state.createBound.sinceIdle.high
	adopted := state.adoptedUnobserved()
	pods := state.podCounts.replicas + adopted + state.creates.outstanding() - state.noLongerAwaited() - state.gained.total()
	if pods <= desired {
		checker.checkExpired(m, state, pods, desired)
		return
	}
	describe := func() Evidence {
		return Evidence{
			Summary: fmt.Sprintf("%s: %s created a pod, for a total of %d (%d wanted): %d active pods in its cache, plus %d adopted pods and %d earlier creates not yet observed, plus this create, minus %d pods that the process may not have counted; etcd has %d active pods",
				state.name(), state.process.name, pods, desired, state.podCounts.replicas, adopted, state.creates.outstanding()-1, state.noLongerAwaited()+state.gained.total(), m.committed.podCountsOf(state.uid).replicas),
			Expected: fmt.Sprintf("at most %d active pods", desired),
			Object:   state.ref(),
			At:       m.now,
			Records:  append(state.creates.records(), m.seq),
		}
	}
	if pods-state.lateObserved.total() <= desired {
		checker.addLatePods(m, state, describe)
		return
	}
	checker.addViolation(describe)
}

// checkExpired checks a create again, and now counts earlier creates whose expectations have
// expired as well. They expire if the process has not observed the pod within expectationsTimeout
// (about 5 minutes).
//
// The parameter pods is the number of pods without the expired creates.
func (checker *notAboveDesiredChecker) checkExpired(m *Model, state *ownerState, pods, desired int) {
	expired := state.expiredCreates()
	if pods+len(expired) <= desired {
		return
	}
	describe := func() Evidence {
		var seqs []int64
		for _, c := range expired {
			seqs = append(seqs, c.seq)
		}
		slices.Sort(seqs)
		return Evidence{
			Summary: fmt.Sprintf("%s: %s created a pod, for a total of %d (%d wanted), including %d earlier pods whose expectations expired before the process observed them; %d active pods in etcd",
				state.name(), state.process.name, pods+len(expired), desired, len(expired), m.committed.podCountsOf(state.uid).replicas),
			Expected: fmt.Sprintf("at most %d active pods", desired),
			Object:   state.ref(),
			At:       m.now,
			Records:  append(seqs[:min(len(seqs), evidenceMax)], m.seq),
		}
	}
	checker.addLatePods(m, state, describe)
}

// addLatePods adds a violation by a process that did not count pods of expired creates. If the
// controller lacks the trait reads-own-writes, this is the known upstream issue late-pods.
func (checker *notAboveDesiredChecker) addLatePods(m *Model, state *ownerState, describe func() Evidence) {
	if o := state.owner(); o != nil && !m.tested.reconcilesWith(o.Kind.Name, kube.ReadsOwnWrites) {
		checker.addKnownViolation(latePods, describe)
		return
	}
	checker.addViolation(describe)
}
