package schema

import (
	"reflect"
	"strings"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/faults/catalog"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// Field describes one field of the scenario format in words.
type Field struct {
	Name string `json:"name"`
	// Type is the type of the value, such as "duration" or "list".
	Type string `json:"type"`
	// Required is true if a scenario must have the field.
	Required bool `json:"required,omitempty"`
	// Default is the value if the field is omitted; "" if there is none.
	Default string `json:"default,omitempty"`
	// Values says which values are allowed; "" if the type says all.
	Values string `json:"values,omitempty"`
	// Meanings explains those values that have a meaning of their own.
	Meanings    []Meaning `json:"meanings,omitempty"`
	Description string    `json:"description,omitempty"`
	// Example is an example in YAML; "" if there is none.
	Example string `json:"-"`
	// Fields returns the fields of a mapping, or of the items of a list of mappings. It is nil
	// for all other values.
	Fields func() []Field `json:"-"`
}

// Meaning is a value of a field and what it means.
type Meaning struct {
	Value string `json:"value"`
	Text  string `json:"text"`
}

// Root describes the scenario file as a whole. Its tree of fields contains all faults, operations
// and triggers.
func Root() Field {
	return Field{
		Name: "scenario", Type: "mapping", Required: true, Example: ScenarioExample,
		Description: "The instructions of one run, in YAML. Unknown fields and values of another type are errors.",
		Fields:      func() []Field { return fieldsOf(reflect.TypeFor[scenario.Scenario]()) },
	}
}

// Faults describes the types of faults. The name of the type is a field of an item in the list
// faults, so each type is a Field.
func Faults() []Field {
	var all []Field
	for _, of := range catalog.All {
		all = append(all, Field{
			Name: of.Name, Type: "mapping", Description: of.Description, Example: "faults:\n" + indented(catalog.Examples[of.Name]),
			Fields: func() []Field { return parametersOf(of) },
		})
	}
	return all
}

// Operations describes the operations of the workload. The name of the operation is a field of
// a step, so each operation is a Field.
func Operations() []Field {
	var all []Field
	for _, op := range scenario.Operations() {
		all = append(all, Field{
			Name: op.Name, Type: "mapping", Description: plain(formatComments()[op.Type.Name()]), Example: strings.TrimSpace(OperationExamples[op.Name]),
			Fields: func() []Field { return fieldsOf(op.Type) },
		})
	}
	return all
}

// Triggers describes the fields of a trigger.
func Triggers() []Field {
	all := fieldsOf(triggerType)
	for i := range all {
		all[i].Example = strings.TrimSpace(TriggerExamples[all[i].Name])
	}
	for i, field := range scenario.FieldsOf(triggerType) {
		if field.Name != "after" { // the comment of the struct says more than that of the field
			all[i].Description = plain(formatComments()[field.Type.Elem().Name()])
		}
	}
	return all
}

// fieldsOf describes the fields of a struct of package scenario.
func fieldsOf(of reflect.Type) []Field {
	var all []Field
	for _, field := range scenario.FieldsOf(of) {
		described := describeField(field)
		described.Default, described.Values = plain(defaultText(of, field)), plain(allowed(of, field))
		if described.Default == required {
			described.Default, described.Required = "", true
		}
		all = append(all, described)
	}
	switch of {
	case faultType:
		all = append(all, Faults()...)
	case stepType:
		all = append(all, Operations()...)
	}
	return all
}

// describeField describes a field without its default and its allowed values.
func describeField(field scenario.FieldFormat) Field {
	described := Field{
		Name: field.Name, Type: typeName(field), Meanings: formatComments().meanings(field), Description: plain(formatComments().field(field)),
	}
	of := field.Type
	if of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	switch {
	case of == triggerType:
		described.Fields = Triggers
	case of.Kind() == reflect.Struct && len(scenario.FieldsOf(of)) > 0:
		described.Fields = func() []Field { return fieldsOf(of) }
	}
	return described
}

// parametersOf describes the parameters of a type of fault.
func parametersOf(of faults.Type) []Field {
	types := parameterTypes(of)
	var all []Field
	for _, param := range of.Params {
		described := describeField(scenario.FieldFormat{Name: param.Name, Type: types[param.Name]})
		described.Required, described.Default = param.Default == "", param.Default
		described.Values, described.Description = param.Bounds, param.Description
		all = append(all, described)
	}
	return all
}

// plain returns text without the quotes of Markdown code.
func plain(text string) string { return strings.ReplaceAll(text, "`", "") }

// indented indents YAML as an item of a list.
func indented(text string) string {
	return "  " + strings.ReplaceAll(text, "\n", "\n  ")
}
