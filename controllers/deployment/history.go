package deployment

import (
	"cmp"
	"math"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
)

// oldestFirst returns sets by age, and by name where that is equal.
func oldestFirst(sets []*appsv1.ReplicaSet) []*appsv1.ReplicaSet {
	return slices.SortedFunc(slices.Values(sets), byAge)
}

func byAge(a, b *appsv1.ReplicaSet) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// nextRevision is the revision of the new ReplicaSet: one above all old ones.
func nextRevision(old []*appsv1.ReplicaSet) int64 {
	var highest int64
	for _, set := range old {
		if revision, ok := revisionOf(set.Annotations); ok {
			highest = max(highest, revision)
		}
	}
	return highest + 1
}

// revisionsToDelete returns the old ReplicaSets to delete: of those above the limit, the
// ones with the lowest revisions, that is, but for any that still counts or
// asks for replicas, or whose spec has not been seen by its controller.
func revisionsToDelete(old []*appsv1.ReplicaSet, limit *int32) []*appsv1.ReplicaSet {
	if limit == nil || *limit == math.MaxInt32 {
		return nil
	}
	alive := slices.DeleteFunc(slices.Clone(old), func(set *appsv1.ReplicaSet) bool { return set.DeletionTimestamp != nil })
	above := max(0, len(alive)-int(*limit))
	slices.SortFunc(alive, func(a, b *appsv1.ReplicaSet) int {
		revisionA, _ := revisionOf(a.Annotations)
		revisionB, _ := revisionOf(b.Annotations)
		return cmp.Or(cmp.Compare(revisionA, revisionB), byAge(a, b))
	})
	return slices.DeleteFunc(alive[:above], func(set *appsv1.ReplicaSet) bool {
		return ptr.Deref(set.Spec.Replicas, 1) != 0 || set.Status.Replicas != 0 || set.Generation > set.Status.ObservedGeneration
	})
}
