package check

import (
	"fmt"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// notBelowDesiredCheck demands that no delete of a pod leaves an owner with fewer than
// spec.replicas active pods. It examines each delete of a pod that is active in the cache of the
// process.
//
// It skips a delete of a pod whose owner was never in this cache.
var notBelowDesiredCheck = Check{
	ID:               "not-below-desired",
	Guarantee:        "A controller never deletes a pod if fewer than spec.replicas active pods of the owner would remain. The remaining pods are the active pods in its cache, minus those that it has already deleted but not yet observed as deleted. It deletes no pods of an owner that is terminating or deleted.",
	Contract:         "ReplicaSet 7, 9",
	Property:         Safety,
	Scope:            contractOf(kube.OwnsPods),
	ExercisedWhen:    "The subject deletes a pod of a ReplicaSet or ReplicationController, and the pod is active in its cache.",
	AllowedBehaviors: []string{"terminating-pods-not-counted", "external-disruptions", "expired-expectations", "delete-without-precondition", "overlapping-selectors"},
	New:              newNotBelowDesiredChecker,
}

// notBelowDesiredChecker reports a delete after which the owner has fewer than spec.replicas active
// pods.
//
// The remaining pods must not be fewer than the lowest spec.replicas in the cache since the process
// was last idle. A process is idle if it has sent nothing for a while and awaits no response.
//
// A pod that the owner lost since the process was idle counts as remaining, unless this process
// deleted it. The process may have decided on the delete before it received the event of such a
// loss.
type notBelowDesiredChecker struct{ findings }

func newNotBelowDesiredChecker(Settings) Checker { return &notBelowDesiredChecker{} }

func (checker *notBelowDesiredChecker) Observe(m *Model, _ *history.Record) {
	c := m.sent
	if c == nil || c.verb != callDeletePod || c.ownerState == nil || !c.ownerState.everCached() || !c.deletesActivePod() {
		return
	}
	checker.exercised++
	state := c.ownerState
	deleting := len(state.deletes.unobserved)
	for _, other := range state.deletes.inFlight {
		if other.deletesActivePod() {
			deleting++
		}
	}
	desired := state.deleteBound.sinceIdle.low
	remaining := state.podCounts.controlledOrAdoptable() - deleting + state.lost.total()
	if remaining >= desired {
		return
	}
	checker.addViolation(func() Evidence {
		e := Evidence{
			Summary: fmt.Sprintf("%s: %s deleted %s, which leaves at most %d active pods in its cache, %d wanted; %d active pods in etcd",
				state.name(), state.process.name, podName(c.pod), remaining, desired, m.committed.podCountsOf(state.uid).replicas),
			Expected: fmt.Sprintf("at least %d active pods", desired),
			Object:   podRef(c.pod),
			At:       m.now,
			Records:  append(state.deletes.records(), m.seq),
		}
		if desired == unlimited {
			e.Summary = fmt.Sprintf("%s is terminating or deleted: %s deleted its %s", state.name(), state.process.name, podName(c.pod))
			e.Expected = "no delete, because the garbage collector deletes the pods"
		}
		return e
	})
}
