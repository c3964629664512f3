// Package podindex finds the pods of a controller, and the pods that have none,
// without listing their namespace: a sync must not cost more the more strangers
// live next door.
package podindex

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// The indexes that Add adds.
const (
	byController = "gauntlet/pods-by-controller"
	byOrphanhood = "gauntlet/orphan-pods-by-namespace"
)

// Add gives a pod informer the indexes that this package reads. Several
// controllers may call it for the informer that they share.
func Add(pods cache.SharedIndexInformer) error {
	if _, present := pods.GetIndexer().GetIndexers()[byController]; present {
		return nil
	}
	err := pods.AddIndexers(cache.Indexers{
		byController: func(object any) ([]string, error) {
			if ref := controllerOf(object); ref != nil {
				return []string{string(ref.UID)}, nil
			}
			return nil, nil
		},
		byOrphanhood: func(object any) ([]string, error) {
			if pod, ok := object.(*corev1.Pod); ok && controllerOf(pod) == nil {
				return []string{pod.Namespace}, nil
			}
			return nil, nil
		},
	})
	if err != nil {
		return fmt.Errorf("indexing pods by controller: %w", err)
	}
	return nil
}

func controllerOf(object any) *metav1.OwnerReference {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return nil
	}
	return metav1.GetControllerOfNoCopy(pod)
}

// ControlledBy returns the cached pods whose controllerRef has the UID, in no
// particular order. They are shared: read only.
func ControlledBy(pods cache.Indexer, controller types.UID) ([]*corev1.Pod, error) {
	return lookup(pods, byController, string(controller))
}

// Orphans returns the cached pods of a namespace that have no controller, in no
// particular order. They are shared: read only.
func Orphans(pods cache.Indexer, namespace string) ([]*corev1.Pod, error) {
	return lookup(pods, byOrphanhood, namespace)
}

func lookup(pods cache.Indexer, index, value string) ([]*corev1.Pod, error) {
	objects, err := pods.ByIndex(index, value)
	if err != nil {
		return nil, fmt.Errorf("looking up pods by index: %w", err)
	}
	found := make([]*corev1.Pod, 0, len(objects))
	for _, object := range objects {
		if pod, ok := object.(*corev1.Pod); ok {
			found = append(found, pod)
		}
	}
	return found, nil
}
