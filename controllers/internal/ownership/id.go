package ownership

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// ID names one owner for as long as it lives. A later object under the same
// key is another owner, told apart by its UID.
type ID struct {
	// Key is "namespace/name", as work queues and caches use it.
	Key string
	// UID is the owner's metadata.uid.
	UID types.UID
}

// IDOf returns the ID of an object.
func IDOf(object metav1.Object) ID {
	return ID{Key: cache.MetaObjectToName(object).String(), UID: object.GetUID()}
}
