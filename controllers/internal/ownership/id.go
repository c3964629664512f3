package ownership

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// ID identifies one owner, such as a ReplicaSet. A later object with the same key is another
// owner, because its UID is different.
type ID struct {
	// Key is "namespace/name", as in work queues and informer caches.
	Key string
	// UID is the owner's metadata.uid.
	UID types.UID
}

// IDOf returns the key and the UID of an object.
func IDOf(object metav1.Object) ID {
	return ID{Key: cache.MetaObjectToName(object).String(), UID: object.GetUID()}
}
