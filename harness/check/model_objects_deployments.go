package check

import (
	"slices"
	"strings"
)

// replicaSetsOf returns the ReplicaSets that count as a Deployment's, sorted by name.
func (state *objectSet) replicaSetsOf(d *deployment) []*owner {
	var sets []*owner
	for _, set := range state.replicaSets[d.UID] {
		if d.counts(set) {
			sets = append(sets, set)
		}
	}
	slices.SortFunc(sets, func(a, b *owner) int { return strings.Compare(a.Name, b.Name) })
	return sets
}

// anyReplicaSet reports whether a ReplicaSet meets a condition.
func (state *objectSet) anyReplicaSet(matches func(*owner) bool) bool {
	for _, o := range state.owners {
		if o.Resource == replicaSetResource && matches(o) {
			return true
		}
	}
	return false
}

// orphanReplicaSets returns the ReplicaSets that a Deployment must adopt, sorted by name.
func (state *objectSet) orphanReplicaSets(d *deployment) []*owner {
	var orphans []*owner
	state.anyReplicaSet(func(set *owner) bool {
		if set.Namespace == d.Namespace && set.controller.UID == "" && !set.terminating && d.selector.Matches(set.labels) {
			orphans = append(orphans, set)
		}
		return false
	})
	slices.SortFunc(orphans, func(a, b *owner) int { return strings.Compare(a.Name, b.Name) })
	return orphans
}

// firstPod returns the first pod of the ReplicaSets, by name, that meets a condition and
// has not ended. It returns nil if there is none.
func (state *objectSet) firstPod(sets []*owner, matches func(*pod) bool) (first *pod) {
	for _, set := range sets {
		for _, p := range state.controlled[set.UID] {
			if !p.ended && matches(p) && (first == nil || p.Name < first.Name) {
				first = p
			}
		}
	}
	return first
}
