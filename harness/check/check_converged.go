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
	AllowedBehaviors: []int{10, 22, 36},
	New:              newConverged,
}

// newConverged judges the owners of pods.
func newConverged(s Settings) Checker {
	backingOff := newWaiting()
	return newSettlement(s, realm{
		nothing: "there was nothing to converge",
		touched: func(w *world) bool {
			for uid := range w.touched {
				if w.owners[uid] != nil {
					return true
				}
			}
			return false
		},
		all: func(m *Model, namespace string) []types.UID { return inOrder(m.truth.owners, namespace) },
		pending: func(m *Model, uid types.UID) (*history.Ref, []pending) {
			o := m.truth.owners[uid]
			return &o.Ref, m.truth.pending(o, m.start.Time.Add(m.now))
		},
		watch: backingOff.observe,
		weakness: func(m *Model, uid types.UID) *KnownIssue {
			if backingOff.explains(m, uid) {
				return longBackOff
			}
			return nil
		},
	})
}
