package check

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// endpointsExactCheck is the row of endpoints-exact in All.
var endpointsExactCheck = Check{
	ID:               "endpoints-exact",
	Guarantee:        "Once faults are healed, the Endpoints of every Service with a selector list exactly its pods, ready or not, at the ports that they have.",
	Contract:         "Endpoints 2 to 10",
	Property:         Liveness,
	AllowedBehaviors: []int{32, 34, 35},
	New:              newEndpointsExact,
}

// newEndpointsExact judges the Services whose Endpoints the subject keeps.
func newEndpointsExact(s Settings) Checker {
	lost, ends := lostWrites{}, unnoticed{}
	givenUp := newDropped(func(c *call) bool { return c.publication != nil })
	return newSettlement(s, realm{
		nothing: "there was no Service with a selector",
		touched: func(w *world) bool { return len(w.published) > 0 },
		all: func(m *Model, namespace string) []types.UID {
			w := m.truth
			return slices.DeleteFunc(inOrder(w.services, namespace), func(uid types.UID) bool { return !w.services[uid].managed() })
		},
		pending: func(m *Model, uid types.UID) (*history.Ref, []pending) {
			s := m.truth.services[uid]
			return &s.Ref, m.truth.pendingService(s)
		},
		watch: func(m *Model, r *history.Record) {
			lost.observe(m, r)
			givenUp.observe(m, r)
			ends.observe(m, r)
		},
		weakness: func(m *Model, uid types.UID) *KnownIssue {
			s := m.truth.services[uid]
			key := item{service: nameOf(s.Ref)}
			switch {
			case hasKey(m, lost, key):
				return lostEndpoints
			case givenUp.explains(m, key):
				return droppedKey
			case ends.explains(m, s):
				return unnoticedEnd
			}
			return nil
		},
	})
}
