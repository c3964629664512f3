// Package childindex indexes pods and ReplicaSets by their controller, and orphans by
// their namespace. With these indexes, a sync does not list the whole namespace. The
// package is generic over the child, so that pods and ReplicaSets use the same indexes.
package childindex

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// Names of the indexes that Add adds.
const (
	byControllerUID    = "gauntlet/by-controller"
	orphansByNamespace = "gauntlet/orphans-by-namespace"
)

// Add adds the indexes of this package to an informer. Several controllers may call it
// for the informer that they share.
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
		return fmt.Errorf("indexing children by controller: %w", err)
	}
	return nil
}

// ControlledBy returns the cached children whose controllerRef has the given UID, in
// no particular order. The children are shared with the cache: do not modify them.
func ControlledBy[Child metav1.Object](children cache.Indexer, controller types.UID) ([]Child, error) {
	return lookup[Child](children, byControllerUID, string(controller))
}

// Candidates returns the cached children that a controller controls or may adopt.
// These are the children whose controllerRef has the controller's UID and the orphans
// in its namespace. Each child is returned once, in no particular order. The children
// are shared with the cache: do not modify them.
//
// The two indexes cannot be read atomically, and a child may move from one to the other
// between the reads. A child that is counted twice would make the controller delete a
// pod; a child that is missed would make it create one. Candidates therefore reads the
// index of controlled children again after the index of orphans. If it finds a child
// twice, it returns the most recent version.
func Candidates[Child metav1.Object](children cache.Indexer, controller metav1.Object) ([]Child, error) {
	controlled := func() ([]Child, error) { return ControlledBy[Child](children, controller.GetUID()) }
	orphans := func() ([]Child, error) { return lookup[Child](children, orphansByNamespace, controller.GetNamespace()) }
	var found []Child
	position := map[types.UID]int{} // index in found, by UID
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

func lookup[Child metav1.Object](children cache.Indexer, index, value string) ([]Child, error) {
	objects, err := children.ByIndex(index, value)
	if err != nil {
		return nil, fmt.Errorf("looking up children by index: %w", err)
	}
	found := make([]Child, 0, len(objects))
	for _, object := range objects {
		if child, ok := object.(Child); ok {
			found = append(found, child)
		}
	}
	return found, nil
}
