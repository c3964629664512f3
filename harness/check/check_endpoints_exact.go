package check

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// endpointsExactCheck demands that the Endpoints of each Service with a selector list exactly the
// addresses of its pods. It examines the Endpoints after the faults are healed.
//
// The verdict is unknown if the run ends before the scenario's time limit while some Endpoints have
// not converged. The check skips Services of type ExternalName.
var endpointsExactCheck = Check{
	ID:               "endpoints-exact",
	Guarantee:        "Within the scenario's bound after the faults are healed, the Endpoints of each Service with a selector list exactly the addresses and ports of its pods, ready and not ready.",
	Contract:         "Endpoints 2 to 10",
	Property:         Liveness,
	Scope:            contractOf(kube.PublishesAddresses),
	ExercisedWhen:    "A Service that has a selector and is not of type ExternalName exists at the end of the run.",
	AllowedBehaviors: []string{"truncated-endpoints", "publish-not-ready-addresses", "trigger-time-annotation"},
	New:              newEndpointsExactChecker,
}

// newEndpointsExactChecker returns a checker that reports Services whose Endpoints do not become
// correct in time. It examines Services with a selector, except those of type ExternalName.
func newEndpointsExactChecker(s Settings) Checker {
	lostWrites, unnoticed, stale := lostEndpointsWrites{}, unnoticedEnds{}, newStaleEndpoints()
	dropped := newDroppedKeys(func(c *call) bool { return c.serviceState != nil })
	return newConvergenceChecker(s, convergingKind{
		noneReason: "no Service with a selector existed at the end of the run",
		changed:    func(state *objectSet) bool { return len(state.changedServices) > 0 },
		all: func(m *Model, namespace string) []types.UID {
			state := m.committed
			return slices.DeleteFunc(sortedByName(state.services, namespace), func(uid types.UID) bool { return !state.services[uid].Managed() })
		},
		pending: func(m *Model, uid types.UID) (*history.Ref, []pending) {
			s := m.committed.services[uid]
			return &s.Ref, m.committed.pendingService(s)
		},
		observe: func(m *Model, r *history.Record) {
			lostWrites.observe(m, r)
			dropped.observe(m, r)
			stale.observe(m, r)
			unnoticed.observe(m, r)
		},
		knownIssue: func(m *Model, uid types.UID) *KnownIssue {
			s := m.committed.services[uid]
			key := workQueueKey{service: nameOf(s.Ref)}
			switch {
			case hasKey(m, lostWrites, key):
				return lostEndpoints
			case dropped.explains(m, key):
				return droppedKey
			case dropped.waits(m, key):
				return longBackOff
			case unnoticed.explains(m, s):
				return unnoticedEnd
			}
			return stale.knownIssue(m, key)
		},
	})
}
