// Package childindex adds indexes to the informers of pods and ReplicaSets. One index finds
// the children of a controller, the other one the orphans in a namespace. With these indexes,
// a sync need not list all objects of the namespace.
package childindex

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// These are the names of the indexes that Add adds to an informer.
const (
	byControllerUID    = "gauntlet/by-controller"
	orphansByNamespace = "gauntlet/orphans-by-namespace"
)

// Add adds the indexes to the informer of the children. It does nothing if another controller
// has already added them to the same informer.
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
		return fmt.Errorf("adding the index by controller owner to the informer: %w", err)
	}
	return nil
}

// ControlledBy returns the cached children whose controllerRef has the given UID, in no
// particular order. The children are shared with the cache, so callers must not modify them.
func ControlledBy[Child metav1.Object](children cache.Indexer, controller types.UID) ([]Child, error) {
	return lookup[Child](children, byControllerUID, string(controller))
}

// Candidates returns the cached children that a controller controls or may adopt. These are the
// children whose controllerRef has the UID of the controller, and the orphans in its namespace.
//
// Each child is returned once, in no particular order. The children are shared with the cache,
// so callers must not modify them.
//
// A child may move from one index to the other between the two reads. If it was missed, the
// controller would create a surplus pod. If it was counted twice, the controller would delete a
// pod. Candidates therefore reads the index of controlled children again after that of orphans.
// Of a child that it finds twice, it returns the version that it read last.
func Candidates[Child metav1.Object](children cache.Indexer, controller metav1.Object) ([]Child, error) {
	controlled := func() ([]Child, error) { return ControlledBy[Child](children, controller.GetUID()) }
	orphans := func() ([]Child, error) { return lookup[Child](children, orphansByNamespace, controller.GetNamespace()) }
	var found []Child
	position := map[types.UID]int{} // key: UID, value: index in found
	for _, read := range []func() ([]Child, error){controlled, orphans, controlled} {
		children, err := read()
		if err != nil {
			return nil, err
		}
		for _, child := range children {
			if at, seen := position[child.GetUID()]; seen {
				found[at] = child
				continue
			}
			position[child.GetUID()] = len(found)
			found = append(found, child)
		}
	}
	return found, nil
}

// lookup returns the cached children that an index has under the given value.
func lookup[Child metav1.Object](children cache.Indexer, index, value string) ([]Child, error) {
	objects, err := children.ByIndex(index, value)
	if err != nil {
		return nil, fmt.Errorf("looking up objects in the informer cache by %s=%q: %w", index, value, err)
	}
	found := make([]Child, 0, len(objects))
	for _, object := range objects {
		if child, ok := object.(Child); ok {
			found = append(found, child)
		}
	}
	return found, nil
}
