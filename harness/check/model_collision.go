package check

import (
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// holdersOf returns the ReplicaSet that has the given name in etcd, and the one in the cache of a
// process. Either may be the reason why a create fails with AlreadyExists. A result is nil if no
// ReplicaSet has the name there.
func (m *Model) holdersOf(name objectName, p *process) (committed, cached *objects.Owner) {
	return m.committed.ownerNamed(name.resource, name.namespace, name.name), p.view.ownerNamed(name.resource, name.namespace, name.name)
}

// collisionCountsOf returns the Deployment before and after a write of its status, so that callers
// can compare status.collisionCount. Both are nil if the version from before the write is unknown,
// or if the write cannot be decoded.
func (m *Model) collisionCountsOf(r *history.Request) (from, to *objects.Deployment) {
	from = objects.Cached[objects.Deployment](m.decoder, m.sent.rollout.uid, r.Object.Version)
	to, err := m.decoder.DecodeDeployment(r.Object)
	if from == nil || err != nil { // the old version is unknown, or the API server rejects a Deployment that cannot be decoded
		return nil, nil
	}
	return from, to
}

// nameMayBeTaken reports whether the API server may have rejected a recent create because another
// ReplicaSet has the name. Only then may the controller increase collisionCount.
//
// The method looks at each name for which a create of the process returned AlreadyExists
// (rolloutState.takenNames). The result is true if one of these facts holds for one of the names:
//
//   - No ReplicaSet has the name any more, neither in etcd nor in the cache. Somebody may have
//     deleted it.
//   - The ReplicaSet that has the name in etcd is not the Deployment's own new ReplicaSet
//     (isNewReplicaSet).
//   - The ReplicaSet that has the name in the cache is not the Deployment's own new ReplicaSet.
//     This fact does not count if the Deployment's own new ReplicaSet certainly caused the
//     rejection, because it already had the name in etcd (nameHolders.certainly).
func (m *Model) nameMayBeTaken(r *rolloutState, d *objects.Deployment) bool {
	for _, holders := range r.takenNames {
		committed, cached := m.holdersOf(holders.name, r.process)
		switch {
		case committed == nil && cached == nil,
			committed != nil && !r.isNewReplicaSet(committed, d),
			cached != nil && !r.isNewReplicaSet(cached, d) && !holders.certainly(committed):
			return true
		}
	}
	return false
}

// isNewReplicaSet reports whether a Deployment controls a ReplicaSet that has its template. The
// name of such a ReplicaSet is no reason for a higher collisionCount.
func (r *rolloutState) isNewReplicaSet(set *objects.Owner, d *objects.Deployment) bool {
	return set.Controller.UID == r.uid && set.Template.Same(d.Template)
}

// certainly reports whether one ReplicaSet is certainly the reason why the API server rejected the
// create. The parameter committed is this ReplicaSet, which has the name in etcd now, or nil. The
// result is true if it also had the name when the API server received the create.
func (holders *nameHolders) certainly(committed *objects.Owner) bool {
	return committed != nil && holders.committed != nil && holders.committed.UID == committed.UID
}
