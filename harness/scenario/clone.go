package scenario

import (
	"reflect"
	"slices"
)

// Clone returns a deep copy of the scenario. Changes of the copy do not affect the original. A
// warning that is added to the copy does not appear in the original.
func (s *Scenario) Clone() *Scenario {
	copied := clone(reflect.ValueOf(s)).Interface().(*Scenario)
	if s.source != nil {
		source := *s.source
		source.warnings = slices.Clone(s.source.warnings)
		copied.source = &source
	}
	return copied
}

// clone returns a deep copy of a Go value, except for unexported fields, such as the source file.
// The copy and the original share the values of these fields.
func clone(from reflect.Value) reflect.Value {
	into := reflect.New(from.Type()).Elem()
	into.Set(from)
	switch from.Kind() {
	case reflect.Pointer:
		if !from.IsNil() {
			into.Set(reflect.New(from.Type().Elem()))
			into.Elem().Set(clone(from.Elem()))
		}
	case reflect.Interface:
		if !from.IsNil() {
			into.Set(clone(from.Elem()))
		}
	case reflect.Struct:
		for _, field := range visibleFields(from.Type()) {
			if field.IsExported() && len(field.Index) == 1 {
				into.FieldByIndex(field.Index).Set(clone(from.FieldByIndex(field.Index)))
			}
		}
	case reflect.Slice:
		if !from.IsNil() {
			into.Set(reflect.MakeSlice(from.Type(), from.Len(), from.Len()))
			for i := range from.Len() {
				into.Index(i).Set(clone(from.Index(i)))
			}
		}
	case reflect.Map:
		if !from.IsNil() {
			into.Set(reflect.MakeMap(from.Type()))
			for _, key := range from.MapKeys() {
				into.SetMapIndex(key, clone(from.MapIndex(key)))
			}
		}
	}
	return into
}
