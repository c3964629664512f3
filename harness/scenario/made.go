package scenario

import (
	"errors"
	"fmt"
	"reflect"
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
	for _, field := range reflect.VisibleFields(value.Type()) {
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

// Clone returns a scenario of its own that says the same, as if it had been read
// from a file.
func (s *Scenario) Clone() (*Scenario, error) {
	data, err := s.Marshal()
	if err != nil {
		return nil, err
	}
	clone, err := Parse(s.Name+".yaml", data)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("reading back scenario %q", s.Name), err)
	}
	return clone, nil
}
