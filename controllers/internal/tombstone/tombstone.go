// Package tombstone reads what the delete handlers of informers are given.
package tombstone

import (
	"fmt"
	"reflect"

	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// LastKnown returns the object that a delete event is about: the object itself,
// or what a tombstone says was known of it when the deletion itself was missed.
// ok is false for anything else, which no informer should send and is logged.
func LastKnown[T any](logger klog.Logger, object any) (known T, ok bool) {
	if missed, is := object.(cache.DeletedFinalStateUnknown); is {
		object = missed.Obj
	}
	known, ok = object.(T)
	if !ok {
		logger.Error(nil, "An event carries no object of its kind", "type", fmt.Sprintf("%T", object), "expected", reflect.TypeFor[T]())
	}
	return known, ok
}
