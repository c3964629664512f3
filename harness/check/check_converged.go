package check

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// convergedCheck is the row of converged in All.
var convergedCheck = Check{
	ID:               "converged",
	Guarantee:        "Once faults are healed, every owner has exactly the active pods that it asks for, and a status that says so, within the scenario's bound.",
	Contract:         "ReplicaSet 4, 5, 14",
	Property:         Liveness,
	AllowedBehaviors: []string{"terminating-pods-not-counted", "whole-second-timestamps", "retry-delay"},
	New:              newConvergedChecker,
}

// newConvergedChecker judges the owners of pods.
func newConvergedChecker(s Settings) Checker {
	backingOff := newBackingOffKeys()
	return newConvergenceChecker(s, convergingKind{
		noneReason: "there was nothing to converge",
		changed: func(objects *objectSet) bool {
			for uid := range objects.changedObjects {
				if objects.owners[uid] != nil {
					return true
				}
			}
			return false
		},
		all: func(m *Model, namespace string) []types.UID { return sortedByName(m.committed.owners, namespace) },
		pending: func(m *Model, uid types.UID) (*history.Ref, []pending) {
			o := m.committed.owners[uid]
			return &o.Ref, m.committed.pendingOwner(o, m.start.Time.Add(m.now))
		},
		observe: backingOff.observe,
		knownIssue: func(m *Model, uid types.UID) *KnownIssue {
			if backingOff.explains(m, uid) {
				return longBackOff
			}
			return nil
		},
	})
}
