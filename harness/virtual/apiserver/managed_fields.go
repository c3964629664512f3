package apiserver

import (
	"errors"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// noFields is a converter for managed fields that treats each object as if it had no fields. With
// it, metadata.managedFields stays empty. Tracking the fields would double the CPU time of a write.
type noFields struct{}

var _ managedfields.TypeConverter = noFields{}

// ObjectToTyped returns a value without fields for every object.
func (noFields) ObjectToTyped(runtime.Object, ...typed.ValidationOptions) (*typed.TypedValue, error) {
	return typed.DeducedParseableType.FromUnstructured(map[string]any{})
}

// TypedToObject returns an error, because only server-side apply calls it, which this API server
// does not support.
func (noFields) TypedToObject(*typed.TypedValue) (runtime.Object, error) {
	return nil, errors.New("server-side apply is not supported, because the API server in virtual time has no managed fields; use an update or a patch of another type")
}
