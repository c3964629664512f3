package schema

import (
	"reflect"
	"strings"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/faults/catalog"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// Field describes one field of the scenario format for users, such as in `gauntlet explain`.
type Field struct {
	Name string `json:"name"`
	// Type is the type of the value, such as "duration" or "list".
	Type string `json:"type"`
	// Required is true if the file must have the field.
	Required bool `json:"required,omitempty"`
	// Default is the value of an omitted field, such as "15s". It is "" if the field has no
	// default.
	Default string `json:"default,omitempty"`
	// Values describes the allowed values, such as "1 to 50". It is "" if every value of the
	// type is allowed.
	Values string `json:"values,omitempty"`
	// Meanings explains single values of the field, such as the phases of a request.
	Meanings    []Meaning `json:"meanings,omitempty"`
	Description string    `json:"description,omitempty"`
	// Example is an example of the field in YAML. It is "" if there is none.
	Example string `json:"-"`
	// Fields returns the fields inside a mapping, or inside the items of a list of mappings. It
	// is nil for all other values.
	Fields func() []Field `json:"-"`
}

// Meaning is an allowed value of a field, with the explanation of the value.
type Meaning struct {
	Value string `json:"value"`
	Text  string `json:"text"`
}

// Root returns the description of the whole scenario file. The fields inside it include all
// faults, operations and triggers.
func Root() Field {
	return Field{
		Name: "scenario", Type: "mapping", Required: true, Example: ScenarioExample,
		Description: "The instructions of one run, in YAML. Unknown fields and values of another type are errors.",
		Fields:      func() []Field { return fieldsOf(reflect.TypeFor[scenario.Scenario]()) },
	}
}

// Faults returns descriptions of all fault types. In YAML, the name of a fault type is the name of
// a field. Each fault type is therefore a Field.
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

// Operations returns descriptions of all operations of the workload. In YAML, the name of an
// operation is the name of a field, so each operation is a Field.
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

// Triggers returns descriptions of the fields of a trigger, such as request and after.
func Triggers() []Field {
	all := fieldsOf(triggerType)
	for i := range all {
		all[i].Example = strings.TrimSpace(TriggerExamples[all[i].Name])
	}
	for i, field := range scenario.FieldsOf(triggerType) {
		if field.Name != "after" { // the comment of the struct says more than the comment of the field
			all[i].Description = plain(formatComments()[field.Type.Elem().Name()])
		}
	}
	return all
}

// fieldsOf returns the descriptions that users see of the fields of a struct of package scenario,
// such as Cluster. For a fault or a step, it adds the fault types or the operations.
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

// describeField returns the description of a field. The caller sets the fields Default and Values.
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

// parametersOf returns descriptions of the parameters of a fault type, such as verb and code of
// api-error.
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

// plain returns text without backquotes, which mark code in Markdown.
func plain(text string) string { return strings.ReplaceAll(text, "`", "") }

// indented indents YAML text by two spaces, so that the text can be an item of a list.
func indented(text string) string {
	return "  " + strings.ReplaceAll(text, "\n", "\n  ")
}
