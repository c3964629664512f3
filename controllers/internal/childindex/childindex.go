// Package childindex adds two indexes to the informers of pods and ReplicaSets. One index finds
// the children of a controller object, such as a ReplicaSet. The other index finds the orphans in
// a namespace. With these indexes, a sync need not list all objects of the namespace.
package childindex

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// These are the names of the two indexes that Add adds to an informer.
const (
	byControllerUID    = "gauntlet/by-controller"
	orphansByNamespace = "gauntlet/orphans-by-namespace"
)

// Add adds the two indexes to the informer of the children. It does nothing if an earlier call
// has added them to the same informer.
func Add(children cache.SharedIndexInformer) error {
	if _, present := children.GetIndexer().GetIndexers()[byControllerUID]; present {
		return nil
	}
	err := children.AddIndexers(cache.Indexers{
		byControllerUID: func(object any) ([]string, error) {
			if child, ok := object.(metav1.Object); ok {
				if ref := metav1.GetControllerOfNoCopy(child); ref != nil {
					return []string{string(ref.UID)}, nil
				}
			}
			return nil, nil
		},
		orphansByNamespace: func(object any) ([]string, error) {
			if child, ok := object.(metav1.Object); ok && metav1.GetControllerOfNoCopy(child) == nil {
				return []string{child.GetNamespace()}, nil
			}
			return nil, nil
		},
	})
	if err != nil {
		return fmt.Errorf("adding the indexes %s and %s to the informer: %w", byControllerUID, orphansByNamespace, err)
	}
	return nil
}

// ControlledBy returns the cached children whose controllerRef has the given UID, in no
// particular order. The cache owns the children, so do not modify them.
func ControlledBy[Child metav1.Object](children cache.Indexer, controller types.UID) ([]Child, error) {
	return lookup[Child](children, byControllerUID, string(controller))
}

// Candidates returns the cached children that a controller object controls or may adopt. These
// are the children whose controllerRef has the controller's UID, and the orphans in its
// namespace. The result contains each child once, in no particular order. The cache owns the
// children, so do not modify them.
//
// Candidates reads the two indexes one after the other. A child may move from one index to the
// other in between. If the result lacked the child, the caller would create a surplus pod. If the
// result had the child twice, the caller would delete a pod. If the cache has changed meanwhile,
// Candidates therefore merges several reads.
func Candidates[Child metav1.Object](children cache.Indexer, controller metav1.Object) ([]Child, error) {
	version := children.LastStoreSyncResourceVersion()
	controlled, err := ControlledBy[Child](children, controller.GetUID())
	if err != nil {
		return nil, err
	}
	orphans, err := lookup[Child](children, orphansByNamespace, controller.GetNamespace())
	if err != nil {
		return nil, err
	}
	if version != "" && version == children.LastStoreSyncResourceVersion() {
		return append(controlled, orphans...), nil
	}
	later, err := ControlledBy[Child](children, controller.GetUID())
	if err != nil {
		return nil, err
	}
	return merge(controlled, orphans, later), nil
}

// merge combines several reads of the cache, so that the result contains each child only once. For
// a child in several reads, it returns the version in the last of these reads.
func merge[Child metav1.Object](reads ...[]Child) []Child {
	var merged []Child
	position := map[types.UID]int{} // key: UID, value: index in merged
	for _, children := range reads {
		for _, child := range children {
			if at, seen := position[child.GetUID()]; seen {
				merged[at] = child
				continue
			}
			position[child.GetUID()] = len(merged)
			merged = append(merged, child)
		}
	}
	return merged
}

// lookup returns the cached children that have the given value in the given informer index.
func lookup[Child metav1.Object](children cache.Indexer, index, value string) ([]Child, error) {
	objects, err := children.ByIndex(index, value)
	if err != nil {
		return nil, fmt.Errorf("looking up objects in the informer cache by index %s, value %q: %w", index, value, err)
	}
	found := make([]Child, 0, len(objects))
	for _, object := range objects {
		if child, ok := object.(Child); ok {
			found = append(found, child)
		}
	}
	return found, nil
}
