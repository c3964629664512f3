package scenario

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
)

// What programs need that make scenarios and do not write files.

// Number is a number of pods, or of a port.
func Number(n int) *IntOrString { return &IntOrString{number: n} }

// Percent is a part of the replicas.
func Percent(n int) *IntOrString { return &IntOrString{text: strconv.Itoa(n) + "%"} }

// PortName is the port of pods that has the name.
func PortName(name string) *IntOrString { return &IntOrString{text: name} }

// MakeParams writes the parameters of a fault from a struct by its yaml tags, as
// Decode reads them. What is zero is left out, so that it gets its default.
func MakeParams(fault string, from any) (Params, error) {
	value := reflect.Indirect(reflect.ValueOf(from))
	if value.Kind() != reflect.Struct {
		return Params{}, fmt.Errorf("making the parameters of %s: expected a struct, found a %T", fault, from)
	}
	fields := mapping{}
	for _, field := range visibleFields(value.Type()) {
		if name, found := fieldTag(field), value.FieldByIndex(field.Index); name != "" && !found.IsZero() {
			fields = append(fields, entry{name: name, value: encode(found)})
		}
	}
	return ParseParams(fault, fault, []byte(inline(&node{value: fields})))
}

// Text is the value of a parameter as it would be written, "" if it is not given.
func (p Params) Text(field string) string {
	if p.node == nil {
		return ""
	}
	fields, _ := p.node.value.(mapping)
	switch value := fields.field(field); {
	case value == nil:
		return ""
	default:
		if text, ok := value.value.(string); ok {
			return text
		}
		return inline(value)
	}
}

// Clone returns a scenario of its own that says the same: whatever can be changed
// in one can be changed without the other.
func (s *Scenario) Clone() *Scenario { return clone(reflect.ValueOf(s)).Interface().(*Scenario) }

// clone copies what exported fields lead to. The others belong to values that
// nobody changes.
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

// ExistingObjects are the objects that the workload leaves behind, in the order of their
// making.
func (s *Scenario) ExistingObjects() []Target {
	var living []Target
	for _, step := range s.Workload {
		target, acts := step.Target()
		if !acts {
			continue
		}
		switch operationOf(step.Operation).effect {
		case makes:
			living = append(living, target)
		case ends:
			living = slices.DeleteFunc(living, func(other Target) bool { return other == target })
		}
	}
	return living
}
