package check

import (
	"slices"
	"strings"
)

// replicaSetsOf returns the ReplicaSets that a Deployment controls and selects, sorted by
// name.
func (objects *objectSet) replicaSetsOf(d *deployment) []*owner {
	var sets []*owner
	for _, set := range objects.replicaSets[d.UID] {
		if d.counts(set) {
			sets = append(sets, set)
		}
	}
	slices.SortFunc(sets, func(a, b *owner) int { return strings.Compare(a.Name, b.Name) })
	return sets
}

// anyReplicaSet reports whether a ReplicaSet meets a condition.
func (objects *objectSet) anyReplicaSet(matches func(*owner) bool) bool {
	for _, o := range objects.owners {
		if o.Resource == replicaSetResource && matches(o) {
			return true
		}
	}
	return false
}

// orphanReplicaSets returns the ReplicaSets that a Deployment must adopt, sorted by name.
func (objects *objectSet) orphanReplicaSets(d *deployment) []*owner {
	var orphans []*owner
	objects.anyReplicaSet(func(set *owner) bool {
		if set.Namespace == d.Namespace && set.controller.UID == "" && !set.terminating && d.selector.Matches(set.labels) {
			orphans = append(orphans, set)
		}
		return false
	})
	slices.SortFunc(orphans, func(a, b *owner) int { return strings.Compare(a.Name, b.Name) })
	return orphans
}

// firstPod returns the first pod by name that belongs to one of the ReplicaSets, meets a
// condition, and has not ended. It returns nil if there is no such pod.
func (objects *objectSet) firstPod(sets []*owner, matches func(*pod) bool) (first *pod) {
	for _, set := range sets {
		for _, p := range objects.controlled[set.UID] {
			if !p.ended && matches(p) && (first == nil || p.Name < first.Name) {
				first = p
			}
		}
	}
	return first
}
