// Package tombstone extracts the deleted object from a delete event of an informer.
package tombstone

import (
	"fmt"
	"reflect"

	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// LastKnown returns the deleted object of a delete event. If the informer missed the deletion, the
// event contains a cache.DeletedFinalStateUnknown with the last known version. LastKnown then
// returns this version. If the object is not a T, LastKnown logs an error, and ok is false.
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
