// Package tombstone unwraps the objects that informers pass to delete handlers.
package tombstone

import (
	"fmt"
	"reflect"

	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// LastKnown returns the object of a delete event: the object itself, or the last known
// state in a cache.DeletedFinalStateUnknown. ok is false if the object has another
// type, which LastKnown logs.
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
