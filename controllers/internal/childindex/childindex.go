// Package childindex finds the children of a controller, and the children that
// have none, without listing their namespace: a sync must not cost more the
// more strangers live next door. It is generic over the child, so that pods and
// ReplicaSets are found by the same indexes.
package childindex

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// The indexes that Add adds.
const (
	byControllerUID    = "gauntlet/by-controller"
	orphansByNamespace = "gauntlet/orphans-by-namespace"
)

// Add gives an informer the indexes that this package reads. Several
// controllers may call it for the informer that they share.
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

// ControlledBy returns the cached children whose controllerRef has the UID, in
// no particular order. They are shared: read only.
func ControlledBy[Child metav1.Object](children cache.Indexer, controller types.UID) ([]Child, error) {
	return lookup[Child](children, byControllerUID, string(controller))
}

// Candidates returns the cached children that a controller has or may adopt: those
// whose controllerRef has its UID, and those of its namespace that have no controller.
// They are in no particular order, each once, and shared: read only.
//
// The two indexes are not read in one step, and between two looks a child may pass from
// one to the other: it would be there twice, and one too many for its controller, which
// deletes it; or not at all, and have another made. So the first index is read again
// after the second, and of a child that was seen twice counts what was seen last.
func Candidates[Child metav1.Object](children cache.Indexer, controller metav1.Object) ([]Child, error) {
	controlled := func() ([]Child, error) { return ControlledBy[Child](children, controller.GetUID()) }
	orphans := func() ([]Child, error) { return lookup[Child](children, orphansByNamespace, controller.GetNamespace()) }
	var found []Child
	position := map[types.UID]int{} // in found
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
