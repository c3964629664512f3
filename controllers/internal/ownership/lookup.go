package ownership

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// OwnerLookup finds owners of one kind in the informer cache. It finds the owner to which a
// child's controllerRef points, and the owners that could adopt an orphan.
type OwnerLookup struct {
	// Cache is the informer cache of the owners. It must have the namespace index.
	Cache cache.Indexer
	// Kind is the kind of the owners in controllerRefs, such as "ReplicaSet".
	Kind string
	// Selector returns the label selector of a cached owner. If it returns an error, the owner
	// cannot adopt orphans.
	Selector func(owner any) (labels.Selector, error)
}

// ResolveControllerRef returns the cached owner that a child's controllerRef, the argument ref,
// names. The bool result is false if ref is nil or has another kind. It is also false if the cache
// has no owner with this name and UID.
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

// EnqueueMatching enqueues the key of every cached owner that could adopt the orphan. To enqueue a
// key, it calls the argument enqueue. It writes an error of the lookup to the log.
func (o OwnerLookup) EnqueueMatching(logger klog.Logger, orphan metav1.Object, enqueue func(key string)) {
	owners, err := o.Matching(orphan)
	if err != nil {
		logger.Error(err, "Looking up owners that could adopt an orphan failed", "orphan", cache.MetaObjectToName(orphan).String())
	}
	for _, owner := range owners {
		enqueue(owner.Key)
	}
}

// Matching returns the cached owners in the orphan's namespace whose selector matches the
// orphan. It returns none for an orphan that is terminating or has no labels.
func (o OwnerLookup) Matching(orphan metav1.Object) ([]ID, error) {
	if orphan.GetDeletionTimestamp() != nil || len(orphan.GetLabels()) == 0 {
		return nil, nil
	}
	objects, err := o.Cache.ByIndex(cache.NamespaceIndex, orphan.GetNamespace())
	if err != nil {
		return nil, fmt.Errorf("listing every %s of namespace %s in the informer cache: %w", o.Kind, orphan.GetNamespace(), err)
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
