// Package tombstone returns the deleted objects of the delete events of informers.
package tombstone

import (
	"fmt"
	"reflect"

	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// LastKnown returns the object of a delete event. If the informer missed the deletion, this is
// the last known state in a cache.DeletedFinalStateUnknown. If the object is not a T,
// LastKnown logs an error and returns false.
func LastKnown[T any](logger klog.Logger, object any) (known T, ok bool) {
	if missed, is := object.(cache.DeletedFinalStateUnknown); is {
		object = missed.Obj
	}
	known, ok = object.(T)
	if !ok {
		logger.Error(nil, "Delete event has an object of an unexpected type", "type", fmt.Sprintf("%T", object), "expected", reflect.TypeFor[T]())
	}
	return known, ok
}
