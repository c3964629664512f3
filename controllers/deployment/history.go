package deployment

import (
	"cmp"
	"math"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
)

// oldestFirst returns the ReplicaSets sorted by creationTimestamp, and then by name.
func oldestFirst(sets []*appsv1.ReplicaSet) []*appsv1.ReplicaSet {
	return slices.SortedFunc(slices.Values(sets), byAge)
}

// byAge compares two ReplicaSets by creationTimestamp, and then by name. The result is negative
// if a is older.
func byAge(a, b *appsv1.ReplicaSet) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// nextRevision returns the revision for the new ReplicaSet: the highest revision of the old
// ReplicaSets plus one.
func nextRevision(old []*appsv1.ReplicaSet) int64 {
	var highest int64
	for _, set := range old {
		if revision, ok := revisionOf(set.Annotations); ok {
			highest = max(highest, revision)
		}
	}
	return highest + 1
}

// revisionsToDelete returns the old ReplicaSets to delete, lowest revision first. Of the
// ReplicaSets that are not terminating, it keeps those with the highest revisions. The argument
// limit says how many it keeps.
//
// revisionsToDelete also keeps each ReplicaSet that may still have pods. Such a ReplicaSet has
// replicas in its spec or status, or its status lacks the latest generation. If limit is nil or
// the highest int32, the result is nil.
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
