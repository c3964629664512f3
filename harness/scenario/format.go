package scenario

import (
	"reflect"
	"slices"
)

// This file describes the format. The generators of the JSON Schema and of the reference
// use the description.

// enums has the values of fields with a fixed set of values. The keys are types and values
// of the tag enum.
var enums = map[string][]string{
	"Kind":           texts(allKinds),
	"Phase":          texts([]Phase{Sent, Committed}),
	"ObjectState":    texts([]ObjectState{Present, Terminating, PodReady, PodPending, PodFailed, Progressing, Completed}),
	"Edge":           texts([]Edge{Begun, Done}),
	"Until":          texts([]Until{Scaled, Ready, Available, Complete, Served, Gone}),
	"Propagation":    texts([]Propagation{Background, Foreground, Orphan}),
	"Controller":     texts([]Controller{NoController, ForeignController}),
	"Strategy":       texts([]Strategy{RollingUpdate, Recreate}),
	"Protocol":       texts([]Protocol{TCP, UDP, SCTP}),
	"ServiceType":    texts([]ServiceType{ClusterIP, NodePort, ExternalName}),
	"requestVerbs":   append([]string{AnyWrite}, Verbs...),
	"resources":      Resources,
	"stateResources": sortedKeys(states),
	"eventTypes":     {"ADDED", "MODIFIED", "DELETED"},
}

func texts[T ~string](values []T) []string {
	all := make([]string, 0, len(values))
	for _, value := range values {
		all = append(all, string(value))
	}
	return all
}

// FieldFormat describes one field of a section of the format.
type FieldFormat struct {
	Name     string // the name in YAML
	Struct   string // the Go struct that declares the field
	GoName   string
	Type     reflect.Type
	Format   string // the tag format: a syntax that the Go type does not express
	Required bool
	Enum     []string // nil if any value is allowed
	Bounds   *Bounds  // nil if the field has no bounds
	Default  any      // a value of type Type; the zero value if there is no default
}

// FieldsOf returns the fields of a struct of this package, in order.
func FieldsOf(of reflect.Type) []FieldFormat {
	var fields []FieldFormat
	defaults := reflect.New(of)
	if value, ok := defaults.Interface().(defaulter); ok {
		value.setDefaults()
	}
	for _, field := range visibleFields(of) {
		name := fieldTag(field)
		if name == "" {
			continue
		}
		described := FieldFormat{
			Name: name, Struct: declares(of, field).Name(), GoName: field.Name, Type: field.Type,
			Format: field.Tag.Get("format"), Required: field.Tag.Get("required") == "true",
			Enum: enums[field.Tag.Get("enum")], Default: defaults.Elem().FieldByIndex(field.Index).Interface(),
		}
		if described.Enum == nil && field.Type.Kind() == reflect.String {
			described.Enum = enums[field.Type.Name()]
		}
		if bounds, ok := BoundsOf(field); ok {
			described.Bounds = &bounds
		}
		fields = append(fields, described)
	}
	return fields
}

// declares returns the struct that declares a field: the struct itself or an embedded one.
func declares(of reflect.Type, field reflect.StructField) reflect.Type {
	for _, index := range field.Index[:len(field.Index)-1] {
		of = of.Field(index).Type
	}
	return of
}

// OperationFormat describes an operation of the workload.
type OperationFormat struct {
	Name    string
	Kinds   []Kind       // the kinds of objects that it supports
	Generic bool         // true if it also supports objects of any other kind
	Type    reflect.Type // the struct with its fields
}

// Operations returns the operations of the workload, in the order of the reference.
func Operations() []OperationFormat {
	var all []OperationFormat
	for _, row := range operations {
		all = append(all, OperationFormat{row.name, row.kinds, row.generic, reflect.TypeOf(row.new()).Elem()})
	}
	return all
}

// KindFormat describes a kind of object of the workload that is not generic.
type KindFormat struct {
	Kind        Kind
	Create      []string // the fields of a create, besides kind and name
	Configure   []string // the fields of a configure; nil if the kind has no configure
	Conditions  []Until
	HasReplicas bool
}

// Kinds returns the kinds of objects of the workload that are not generic.
func Kinds() []KindFormat {
	var all []KindFormat
	for _, row := range kinds {
		described := KindFormat{Kind: row.kind, Create: row.fields, Conditions: row.untils, HasReplicas: row.kind.owner()}
		if described.HasReplicas {
			described.Configure = configurable(row.kind)
		}
		all = append(all, described)
	}
	return all
}

// GenericCreateFields returns the fields that a create of a generic kind has, besides kind
// and name.
func GenericCreateFields() []string { return slices.Clone(genericRow.fields) }

// StatesOf returns the states of a resource for the trigger state.
func StatesOf(resource string) []ObjectState { return slices.Clone(statesOf(resource)) }

// StateResources returns the resources of the trigger state in every scenario.
func StateResources() []string { return slices.Clone(enums["stateResources"]) }
