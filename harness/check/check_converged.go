package check

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// convergedCheck demands that each ReplicaSet and ReplicationController gets the right pods and
// status after the faults are healed.
//
// The verdict is unknown if an object has not converged, but the run ends before the scenario's
// time limit. The check skips terminating objects.
var convergedCheck = Check{
	ID:               "converged",
	Guarantee:        "Within the scenario's bound after the faults are healed, each ReplicaSet and ReplicationController has exactly spec.replicas active pods, and a status that matches them.",
	Contract:         "ReplicaSet 4, 5, 14",
	Property:         Liveness,
	Scope:            contractOf(kube.OwnsPods),
	ExercisedWhen:    "A ReplicaSet or ReplicationController exists at the end of the run.",
	AllowedBehaviors: []string{"terminating-pods-not-counted", "whole-second-timestamps", "retry-delay"},
	New:              newConvergedChecker,
}

// newConvergedChecker returns a checker that reports ReplicaSets and ReplicationControllers that
// do not converge in time.
func newConvergedChecker(s Settings) Checker {
	backingOff := newBackingOffKeys()
	return newConvergenceChecker(s, convergingKind{
		noneReason: "no ReplicaSet or ReplicationController existed at the end of the run",
		changed: func(state *objectSet) bool {
			for uid := range state.changedObjects {
				if state.owners[uid] != nil {
					return true
				}
			}
			return false
		},
		all: func(m *Model, namespace string) []types.UID {
			return slices.DeleteFunc(sortedByName(m.committed.owners, namespace), func(uid types.UID) bool {
				return !m.tested.reconciles(m.committed.owners[uid].Kind.Name)
			})
		},
		pending: func(m *Model, uid types.UID) (*history.Ref, []pending) {
			o := m.committed.owners[uid]
			return &o.Ref, m.committed.pendingOwner(o, m.start.Time.Add(m.now))
		},
		observe: backingOff.observe,
		knownIssue: func(m *Model, uid types.UID) *KnownIssue {
			if backingOff.waits(m, workQueueKey{uid: uid}) {
				return longBackOff
			}
			return nil
		},
	})
}
