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
	AllowedBehaviors: []string{"truncated-endpoints", "publish-not-ready-addresses", "trigger-time-annotation"},
	New:              newEndpointsExactChecker,
}

// newEndpointsExactChecker judges the Services whose Endpoints the subject keeps.
func newEndpointsExactChecker(s Settings) Checker {
	lost, ends := lostEndpointsWrites{}, unnoticedEnds{}
	givenUp := newDroppedKeys(func(c *call) bool { return c.serviceState != nil })
	return newConvergenceChecker(s, convergingKind{
		noneReason: "there was no Service with a selector",
		changed:    func(objects *objectSet) bool { return len(objects.changedServices) > 0 },
		all: func(m *Model, namespace string) []types.UID {
			objects := m.committed
			return slices.DeleteFunc(sortedByName(objects.services, namespace), func(uid types.UID) bool { return !objects.services[uid].managed() })
		},
		pending: func(m *Model, uid types.UID) (*history.Ref, []pending) {
			s := m.committed.services[uid]
			return &s.Ref, m.committed.pendingService(s)
		},
		observe: func(m *Model, r *history.Record) {
			lost.observe(m, r)
			givenUp.observe(m, r)
			ends.observe(m, r)
		},
		knownIssue: func(m *Model, uid types.UID) *KnownIssue {
			s := m.committed.services[uid]
			key := workQueueKey{service: nameOf(s.Ref)}
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
