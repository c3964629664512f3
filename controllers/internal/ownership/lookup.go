package ownership

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// OwnerLookup finds cached owners of one kind. It finds the owner that a controllerRef
// names, and the owners that could adopt an orphan.
type OwnerLookup struct {
	// Cache is the informer's cache of owners, indexed by namespace.
	Cache cache.Indexer
	// Kind is the kind that controllerRefs name.
	Kind string
	// Selector returns the selector of a cached owner. An owner for which it returns
	// an error adopts nothing.
	Selector func(owner any) (labels.Selector, error)
}

// ResolveControllerRef returns the cached owner that ref names. It returns false if
// the kind or the UID differs, or if ref is nil.
func (o OwnerLookup) ResolveControllerRef(namespace string, ref *metav1.OwnerReference) (ID, bool) {
	if ref == nil || ref.Kind != o.Kind {
		return ID{}, false
	}
	object, exists, err := o.Cache.GetByKey(cache.NewObjectName(namespace, ref.Name).String())
	if err != nil || !exists {
		return ID{}, false
	}
	id := IDOf(object.(metav1.Object))
	return id, id.UID == ref.UID
}

// EnqueueMatching enqueues the key of every owner that could adopt orphan.
func (o OwnerLookup) EnqueueMatching(logger klog.Logger, orphan metav1.Object, enqueue func(key string)) {
	owners, err := o.Matching(orphan)
	if err != nil {
		logger.Error(err, "Looking up owners that could adopt an orphan failed", "orphan", cache.MetaObjectToName(orphan).String())
	}
	for _, owner := range owners {
		enqueue(owner.Key)
	}
}

// Matching returns every owner that could adopt orphan.
func (o OwnerLookup) Matching(orphan metav1.Object) ([]ID, error) {
	if orphan.GetDeletionTimestamp() != nil || len(orphan.GetLabels()) == 0 {
		return nil, nil
	}
	objects, err := o.Cache.ByIndex(cache.NamespaceIndex, orphan.GetNamespace())
	if err != nil {
		return nil, fmt.Errorf("looking up owners of kind %s by namespace: %w", o.Kind, err)
	}
	var matching []ID
	for _, object := range objects {
		selector, err := o.Selector(object)
		if err == nil && selector.Matches(labels.Set(orphan.GetLabels())) {
			matching = append(matching, IDOf(object.(metav1.Object)))
		}
	}
	return matching, nil
}
