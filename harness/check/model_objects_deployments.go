package check

import (
	"slices"
	"strings"
)

// setsOf returns the ReplicaSets of a Deployment in order of names.
func (w *world) setsOf(d *deployment) []*owner {
	var sets []*owner
	for _, set := range w.sets[d.UID] {
		if d.owns(set) {
			sets = append(sets, set)
		}
	}
	slices.SortFunc(sets, func(a, b *owner) int { return strings.Compare(a.Name, b.Name) })
	return sets
}

// anySet reports whether there is such a ReplicaSet.
func (w *world) anySet(such func(*owner) bool) bool {
	for _, o := range w.owners {
		if o.Resource == setResource && such(o) {
			return true
		}
	}
	return false
}

// orphanSets returns the ReplicaSets that a Deployment is to adopt, in order of names.
func (w *world) orphanSets(d *deployment) []*owner {
	var orphans []*owner
	w.anySet(func(set *owner) bool {
		if set.Namespace == d.Namespace && set.controller.UID == "" && !set.terminating && d.selector.Matches(set.labels) {
			orphans = append(orphans, set)
		}
		return false
	})
	slices.SortFunc(orphans, func(a, b *owner) int { return strings.Compare(a.Name, b.Name) })
	return orphans
}

// running returns such a pod of the given ReplicaSets that has neither failed
// nor succeeded, the first in order of names; nil if there is none.
func (w *world) running(sets []*owner, such func(*pod) bool) (first *pod) {
	for _, set := range sets {
		for _, p := range w.controlled[set.UID] {
			if !p.ended && such(p) && (first == nil || p.Name < first.Name) {
				first = p
			}
		}
	}
	return first
}
