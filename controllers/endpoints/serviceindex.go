package endpoints

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

// servicesBySelector is the name of an informer index of Services. The index value of a Service
// contains one key and value of the Service's selector. Every pod that the Service selects has
// this label. To find the Services that select a pod, look up each label of the pod.
const servicesBySelector = "gauntlet/services-by-selector"

// addServiceIndex adds the index servicesBySelector to the informer of Services. The informer
// must not be started yet.
func addServiceIndex(services cache.SharedIndexInformer) error {
	err := services.AddIndexers(cache.Indexers{
		servicesBySelector: func(object any) ([]string, error) {
			service, ok := object.(*corev1.Service)
			if !ok || !managesEndpoints(service) {
				return nil, nil
			}
			key := slices.Min(slices.Collect(maps.Keys(service.Spec.Selector)))
			return []string{indexValue(service.Namespace, key, service.Spec.Selector[key])}, nil
		},
	})
	if err != nil {
		return fmt.Errorf("adding the index of Services by selector to the informer: %w", err)
	}
	return nil
}

// indexValue returns an index value for servicesBySelector, such as "default/app=web". The
// arguments key and value are one entry of a label selector.
//
// The value is unambiguous: namespaces and label values contain no slash, and no argument
// contains an equal sign.
func indexValue(namespace, key, value string) string {
	return namespace + "/" + key + "=" + value
}

// servicesSelecting returns the keys of the cached Services whose selector matches the given
// labels. It returns each key once. It skips Services whose Endpoints the controller does not
// manage.
func servicesSelecting(services cache.Indexer, namespace string, labels map[string]string) ([]string, error) {
	var keys []string
	for key, value := range labels {
		objects, err := services.ByIndex(servicesBySelector, indexValue(namespace, key, value))
		if err != nil {
			return nil, fmt.Errorf("looking up the Services that select a pod of namespace %s in the informer cache: %w", namespace, err)
		}
		for _, object := range objects {
			if service, ok := object.(*corev1.Service); ok && selects(service, labels) {
				keys = append(keys, cache.MetaObjectToName(service).String())
			}
		}
	}
	return keys, nil
}
