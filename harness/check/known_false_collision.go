package check

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// falseCollisions contains, for each Deployment, the ReplicaSets of this Deployment that a process
// took for those of another owner. The keys and the values are UIDs. The type recognizes the known
// upstream issue false-collision.
type falseCollisions map[types.UID]map[types.UID]bool

// observe stores a ReplicaSet when a process increments collisionCount because of it. The process
// took this ReplicaSet for one of another owner.
func (collisions falseCollisions) observe(m *Model, r *history.Record) {
	if m.sent == nil || m.sent.rollout == nil || r.Request.Resource != objects.DeploymentResource || r.Request.Object == nil {
		return
	}
	if set := m.mistakenReplicaSet(r.Request); set != nil {
		insert(collisions, m.sent.rollout.uid, set.UID, true)
	}
}

// explains reports whether a Deployment has not converged only because of false collisions. In a
// false collision, the controller took the Deployment's own ReplicaSet for another owner's, and
// created a second one. Several ReplicaSets then have the Deployment's template, and the oldest of
// them has all pods.
func (collisions falseCollisions) explains(state *objectSet, d *objects.Deployment, now time.Time) bool {
	current, _ := splitByTemplate(d, state.replicaSetsOf(d))
	if len(current) < 2 {
		return false
	}
	mistaken := 0
	for _, set := range current {
		if collisions[d.UID][set.UID] {
			mistaken++
		}
	}
	return mistaken >= len(current)-1 && every(state.pendingDeploymentWith(d, oldestOf(current, d.Template), now), func(p pending) bool { return p.awaited })
}

// mistakenReplicaSet detects a process that mistakes a Deployment's own new ReplicaSet for another
// owner's, and so reports a name collision. It returns the own ReplicaSet, or nil if the status in
// the request shows no such mistake.
//
// The API server rejected a create, because the Deployment's own new ReplicaSet already has the
// name. The process then looked for the name in its cache. There it found a ReplicaSet of another
// owner, such as a deleted Deployment with the same name. It therefore increments collisionCount.
// If there are several such names, the last rejected create counts.
func (m *Model) mistakenReplicaSet(r *history.Request) *objects.Owner {
	from, d := m.collisionCountsOf(r)
	if from == nil || d.Status.CollisionCount != from.Status.CollisionCount+1 || m.nameMayBeTaken(m.sent.rollout, d) {
		return nil
	}
	other := func(set *objects.Owner) bool { return set != nil && set.Controller.UID != d.UID }
	var last *nameHolders
	for _, holders := range m.sent.rollout.takenNames {
		if last == nil || holders.rejectedAt > last.rejectedAt {
			last = holders
		}
	}
	if last == nil || !slices.ContainsFunc(last.cached[:], other) {
		return nil
	}
	committed, _ := m.holdersOf(last.name, m.sent.process)
	if !last.certainly(committed) || !m.sent.rollout.isNewReplicaSet(committed, d) {
		return nil
	}
	return committed
}
