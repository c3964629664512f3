package scenario

import (
	"reflect"
	"slices"

	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// This file returns descriptions of the fields of the scenario format. Package schema generates
// the JSON Schema and the reference documentation from these descriptions.

// enums has the allowed values of fields with a fixed set of values. The key is the value of the
// struct tag enum, or else the name of the field's Go type.
var enums = map[string][]string{
	"Kind":             texts(allKinds),
	"Phase":            texts([]Phase{Sent, Committed}),
	"ObjectState":      texts([]ObjectState{Present, Terminating, PodReady, PodPending, PodFailed, Progressing, Completed}),
	"Edge":             texts([]Edge{Begun, Done}),
	"Until":            texts([]Until{Scaled, Ready, Available, Complete, Served, Gone, Quiet}),
	"Propagation":      texts([]Propagation{Background, Foreground, Orphan}),
	"Controller":       texts([]Controller{NoController, ForeignController}),
	"Strategy":         texts([]Strategy{RollingUpdate, Recreate}),
	"SelectorOperator": texts([]SelectorOperator{In, NotIn, Exists, DoesNotExist}),
	"Protocol":         texts([]Protocol{TCP, UDP, SCTP}),
	"ServiceType":      texts([]ServiceType{ClusterIP, NodePort, ExternalName}),
	"requestVerbs":     append([]string{AnyWrite}, Verbs...),
	"resources":        Resources,
	"stateResources":   resourcesOf(kube.Observed(kube.OrDefault(nil))),
	"eventTypes":       {"ADDED", "MODIFIED", "DELETED"},
}

// texts converts values of a string type, such as Kind, to strings for the map enums.
func texts[T ~string](values []T) []string {
	all := make([]string, 0, len(values))
	for _, value := range values {
		all = append(all, string(value))
	}
	return all
}

// FieldFormat describes one field of the scenario format, for the JSON Schema and for the
// reference documentation.
type FieldFormat struct {
	Name     string // the name of the field in YAML
	Struct   string // the name of the Go struct that declares the field
	GoName   string
	Type     reflect.Type
	Format   string // the value of the struct tag format: the name of a syntax, such as glob; "" if there is none
	Required bool
	Nullable bool     // whether the field may be null, which is the same as no field
	Enum     []string // the allowed values; nil if the field has no fixed set of values
	Bounds   *Bounds  // nil if the field has no bounds
	Default  any      // a value of type Type; the zero value if there is no default
}

// FieldsOf returns descriptions of the fields of a struct of this package, in the order of the
// struct. It includes the fields of embedded structs.
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
			Format: field.Tag.Get("format"), Required: field.Tag.Get("required") == "true", Nullable: nullable(field),
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

// declares returns the struct type in which a field is declared. The reference documentation finds
// the comment of the field by this type. The result is the struct in the argument named of, or a
// struct embedded in that struct.
func declares(of reflect.Type, field reflect.StructField) reflect.Type {
	for _, index := range field.Index[:len(field.Index)-1] {
		of = of.Field(index).Type
	}
	return of
}

// OperationFormat describes an operation of the workload, for the JSON Schema and for the
// reference documentation.
type OperationFormat struct {
	Name    string
	Kinds   []Kind       // the kinds of objects that the operation supports, without generic kinds
	Generic bool         // true if the operation also supports generic kinds; see [Kind.IsGeneric]
	Type    reflect.Type // the Go struct that declares the fields of the operation
}

// Operations returns descriptions of all operations of the workload, in the order of the
// reference documentation.
func Operations() []OperationFormat {
	var all []OperationFormat
	for _, row := range operations {
		all = append(all, OperationFormat{row.name, row.kinds, row.generic, reflect.TypeOf(row.new()).Elem()})
	}
	return all
}

// KindFormat describes how a workload can use a kind that needs no manifest, such as Deployment.
type KindFormat struct {
	Kind        Kind
	Create      []string // the fields of the operation create for this kind, besides kind and name
	Configure   []string // the fields of the operation configure for this kind; nil if it does not support configure
	Conditions  []Until  // the one-word conditions that an await of the kind may have
	HasReplicas bool     // true if objects of the kind have spec.replicas
}

// Kinds returns descriptions of all kinds that need no manifest, such as Deployment and Pod. For
// these kinds, the operation create has fields such as replicas.
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

// GenericCreateFields returns the fields that the operation create has for a generic kind. A
// generic kind, such as StatefulSet, is one that needs a manifest. The fields kind and name are
// not included.
func GenericCreateFields() []string { return slices.Clone(genericRow.fields) }

// StateResources returns the resources that a state trigger may name in every scenario, such as
// pods.
func StateResources() []string { return slices.Clone(enums["stateResources"]) }
