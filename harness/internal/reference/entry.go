// Package reference describes everything that has a name in scenarios and reports: checks, faults,
// operations, triggers, Kinds and scenarios. It reads the tables of other packages, and needs
// neither a source tree nor a network. The commands list and explain show the descriptions.
package reference

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/kube-gauntlet/gauntlet/harness/scenario/schema"
)

// Entry describes one thing that has a name in scenarios or reports, such as the check max-surge.
type Entry struct {
	// Kind is the singular name of the [Section] that contains the entry, such as "check". For a
	// field of the scenario format, it is "field".
	Kind string
	// Name is the name of the thing, such as "max-surge". For a field, it is the path from the
	// root, such as "scenario.settle.quiet".
	Name string
	// Aliases lists other names by which Find finds the entry, such as "deploy" for the Kind
	// Deployment.
	Aliases []string
	// Description says in sentences what the thing is.
	Description string
	// Facts has further properties, in the order in which "gauntlet explain" shows them.
	Facts []Fact
	// Fields has the fields that the thing can have in a scenario, such as the parameters of a
	// fault.
	Fields []schema.Field
	// Example is an example in YAML. It is "" if there is none.
	Example string
	// Page is the documentation page about the thing, such as
	// "docs/reference/checks.md#max-surge". The path is relative to the root of the source tree.
	Page string
}

// Fact is a named property of an entry, such as the API version of a Kind.
type Fact struct {
	// Name is the name of the property in JSON, such as "apiVersion".
	Name string
	// Value is the value of the property: a string, a bool, a []string or a []Item.
	Value any
}

// Item is a text with a name, such as a statement of the contract.
type Item struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Value returns the value of the fact with the given name. It returns nil if the entry has no such
// fact.
func (e *Entry) Value(name string) any {
	if i := slices.IndexFunc(e.Facts, func(f Fact) bool { return f.Name == name }); i >= 0 {
		return e.Facts[i].Value
	}
	return nil
}

// MarshalJSON encodes the entry as a JSON object, in which each fact is a property. It omits facts
// without a value, and the aliases.
func (e Entry) MarshalJSON() ([]byte, error) {
	properties := []Fact{{"kind", e.Kind}, {"name", e.Name}, {"description", e.Description}}
	properties = append(properties, e.Facts...)
	if len(e.Fields) > 0 {
		properties = append(properties, Fact{"fields", e.Fields})
	}
	properties = append(properties, Fact{"example", e.Example}, Fact{"page", e.Page})
	var out bytes.Buffer
	for _, p := range properties {
		if isEmpty(p.Value) {
			continue
		}
		value, err := json.Marshal(p.Value)
		if err != nil {
			return nil, err
		}
		separator := byte(',')
		if out.Len() == 0 {
			separator = '{'
		}
		out.WriteByte(separator)
		out.WriteString(`"` + p.Name + `":`)
		out.Write(value)
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// isEmpty reports whether a fact has no value: an empty string or an empty slice.
func isEmpty(value any) bool {
	switch value := value.(type) {
	case string:
		return value == ""
	case []string:
		return len(value) == 0
	case []Item:
		return len(value) == 0
	}
	return false
}
