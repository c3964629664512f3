package scenario

import (
	"fmt"
	"reflect"
	"strconv"
)

// Number returns the value n for a field that is a number of pods or a port number.
func Number(n int) *IntOrString { return &IntOrString{number: n} }

// Percent returns the value n% for a field that is a percentage of the replicas.
func Percent(n int) *IntOrString { return &IntOrString{text: strconv.Itoa(n) + "%"} }

// PortName returns the value for a field that may be the name of a container port, such as
// targetPort.
func PortName(name string) *IntOrString { return &IntOrString{text: name} }

// MakeParams converts a struct with yaml tags to the parameters of a fault. Go code that creates
// scenarios uses it.
//
// MakeParams omits fields with a zero value. When the fault type decodes the parameters, such
// fields keep their defaults.
func MakeParams(fault string, from any) (Params, error) {
	value := reflect.Indirect(reflect.ValueOf(from))
	if value.Kind() != reflect.Struct {
		return Params{}, fmt.Errorf("making the parameters of fault %s: found Go type %T; expected a struct", fault, from)
	}
	fields := mapping{}
	for _, field := range visibleFields(value.Type()) {
		if name, found := fieldTag(field), value.FieldByIndex(field.Index); name != "" && !found.IsZero() {
			fields = append(fields, entry{name: name, value: encode(found)})
		}
	}
	return ParseParams(fault, fault, []byte(inline(&node{value: fields})))
}

// Text returns the value of a parameter as text, such as "pods". Numbers, lists and mappings
// have the form that [Scenario.Marshal] writes. Text returns "" if the file omits the parameter.
func (p Params) Text(field string) string {
	if p.node == nil {
		return ""
	}
	fields, _ := p.node.value.(mapping)
	switch value := fields.field(field); {
	case value == nil, value.value == nil:
		return ""
	default:
		if text, ok := value.value.(string); ok {
			return text
		}
		return inline(value)
	}
}
