package check

import (
	"slices"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// replicaSetsOf returns the ReplicaSets that a Deployment counts as its own, sorted by name.
// Their controllerRef names the Deployment, the Deployment's selector matches their labels, and
// they are not terminating.
func (state *objectSet) replicaSetsOf(d *objects.Deployment) []*objects.Owner {
	var sets []*objects.Owner
	for _, set := range state.replicaSets[d.UID] {
		if d.Counts(set) {
			sets = append(sets, set)
		}
	}
	slices.SortFunc(sets, func(a, b *objects.Owner) int { return strings.Compare(a.Name, b.Name) })
	return sets
}

// anyReplicaSet reports whether the given function returns true for any ReplicaSet in the set. It
// does not matter which controller the ReplicaSet has.
func (state *objectSet) anyReplicaSet(matches func(*objects.Owner) bool) bool {
	for _, o := range state.owners {
		if o.Resource == objects.ReplicaSetResource && matches(o) {
			return true
		}
	}
	return false
}

// orphanReplicaSets returns the ReplicaSets that a Deployment must adopt, sorted by name.
// They have no controllerRef, the Deployment's selector matches their labels, and they are
// not terminating.
func (state *objectSet) orphanReplicaSets(d *objects.Deployment) []*objects.Owner {
	var orphans []*objects.Owner
	state.anyReplicaSet(func(set *objects.Owner) bool {
		if set.Namespace == d.Namespace && set.Controller.UID == "" && !set.Terminating && d.Selector.Matches(set.Labels) {
			orphans = append(orphans, set)
		}
		return false
	})
	slices.SortFunc(orphans, func(a, b *objects.Owner) int { return strings.Compare(a.Name, b.Name) })
	return orphans
}

// firstPod returns the first pod, by name, for which the given function returns true. It returns
// nil if there is no such pod. It searches the pods of the given ReplicaSets, except failed and
// succeeded pods.
func (state *objectSet) firstPod(sets []*objects.Owner, matches func(*objects.Pod) bool) (first *objects.Pod) {
	for _, set := range sets {
		for _, p := range state.controlled[set.UID] {
			if !p.Ended && matches(p) && (first == nil || p.Name < first.Name) {
				first = p
			}
		}
	}
	return first
}
