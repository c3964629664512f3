// Package tombstone reads what delete handlers of informers are given.
package tombstone

import "k8s.io/client-go/tools/cache"

// LastKnown returns the object that a delete event is about: the object itself,
// or what a tombstone says was known of it when the deletion itself was missed.
// ok is false for anything else.
func LastKnown[T any](object any) (known T, ok bool) {
	if missed, is := object.(cache.DeletedFinalStateUnknown); is {
		object = missed.Obj
	}
	known, ok = object.(T)
	return known, ok
}
