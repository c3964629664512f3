package check

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// convergingKind is what a checker must know about the objects of one kind to tell whether they
// have converged. An object has converged when the controllers under test have nothing left to do
// for it.
type convergingKind struct {
	// noneReason is the reason of the verdict not-exercised if the run has no objects of the kind.
	noneReason string
	// changed reports whether the current record may have changed an object of the kind. The
	// parameter committed contains the objects in etcd, and which of them the record changed.
	changed func(committed *objectSet) bool
	// all returns the UIDs of all objects of the kind in a namespace, sorted by object name.
	all func(m *Model, namespace string) []types.UID
	// pending returns a reference to the object with this UID, and how the object differs from
	// the converged state. An example of a difference is a wrong status.replicas.
	pending func(m *Model, uid types.UID) (*history.Ref, []pending)
	// knownIssue returns the known upstream issue that explains why an object has not converged. It
	// returns nil if no issue explains this. The field itself may be nil.
	knownIssue func(m *Model, uid types.UID) *KnownIssue
	// waits reports whether the key of an object waits for its own retry. The field may be nil.
	waits func(m *Model, uid types.UID) bool
}

// convergingOwners describes ReplicaSets and ReplicationControllers.
func convergingOwners() convergingKind {
	return convergingKind{
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
		knownIssue: func(m *Model, uid types.UID) *KnownIssue {
			switch {
			case m.issues.backingOff.waits(m, workQueueKey{uid: uid}):
				return longBackOff
			case m.issues.deletes.explains(m, uid):
				return deleteAfterOwnerChange
			}
			return nil
		},
	}
}

// convergingDeployments describes Deployments.
func convergingDeployments() convergingKind {
	return convergingKind{
		noneReason: "no Deployment existed at the end of the run",
		changed: func(state *objectSet) bool {
			for uid := range state.changedObjects {
				if state.deployments[uid] != nil {
					return true
				}
			}
			return false
		},
		all: func(m *Model, namespace string) []types.UID { return sortedByName(m.committed.deployments, namespace) },
		pending: func(m *Model, uid types.UID) (*history.Ref, []pending) {
			d := m.committed.deployments[uid]
			return &d.Ref, m.committed.pendingDeployment(d, m.start.Time.Add(m.now))
		},
		knownIssue: func(m *Model, uid types.UID) *KnownIssue {
			key, d := workQueueKey{uid: uid}, m.committed.deployments[uid]
			if m.issues.collisions.explains(m.committed, d, m.start.Time.Add(m.now)) {
				return falseCollision
			}
			if known := m.committed.knownRolloutIssue(d, hasKey(m, m.issues.abandoned, key), m.issues.droppedDeployments.explains(m, key)); known != nil {
				return known
			}
			// A ReplicaSet that has not converged, because its key waits for its retry, keeps the rollout
			// from completing.
			if m.issues.droppedDeployments.waits(m, key) || slices.ContainsFunc(m.committed.replicaSetsOf(d), func(set *objects.Owner) bool {
				return len(m.committed.pendingOwner(set, m.start.Time.Add(m.now))) > 0 && m.issues.backingOff.waits(m, workQueueKey{uid: set.UID})
			}) {
				return longBackOff
			}
			return nil
		},
		waits: func(m *Model, uid types.UID) bool {
			return m.issues.droppedDeployments.waits(m, workQueueKey{uid: uid})
		},
	}
}

// convergingServices describes Services with a selector, except those of type ExternalName.
func convergingServices() convergingKind {
	return convergingKind{
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
		knownIssue: func(m *Model, uid types.UID) *KnownIssue {
			s := m.committed.services[uid]
			key := workQueueKey{service: nameOf(s.Ref)}
			switch {
			case hasKey(m, m.issues.lostWrites, key):
				return lostEndpoints
			case m.issues.droppedServices.explains(m, key):
				return droppedKey
			case m.issues.droppedServices.waits(m, key):
				return longBackOff
			case m.issues.unnoticed.explains(m, s):
				return unnoticedEnd
			}
			return m.issues.stale.knownIssue(m, key)
		},
	}
}
