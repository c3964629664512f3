// Package reference describes everything that has a name in scenarios and reports: checks, faults,
// operations, triggers, kinds and scenarios. It reads their registries, and needs neither a source
// tree nor a network. The commands list and explain show its entries.
package reference

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/kube-gauntlet/gauntlet/harness/scenario/schema"
)

// Entry describes one thing that has a name, such as the check max-surge.
type Entry struct {
	// Kind is the singular name of the section that has the entry, such as "check". It is
	// "field" for a field of the scenario format.
	Kind string
	// Name is the name within the section. For a field, it is the path from the root, such as
	// "scenario.settle.quiet".
	Name string
	// Aliases are other names under which Find finds the entry.
	Aliases []string
	// Description says what it is, in sentences.
	Description string
	// Facts are further properties, in the order in which explain shows them.
	Facts []Fact
	// Fields are the fields of a mapping in a scenario, such as the parameters of a fault.
	Fields []schema.Field
	// Example is an example in YAML; "" if there is none.
	Example string
	// Page is the path of the page that describes the entry, relative to the root of the source
	// tree, with its anchor.
	Page string
}

// Fact is a property of an entry.
type Fact struct {
	// Name is the name of the property in JSON, such as "apiVersion".
	Name string
	// Value is a string, a bool, a []string or a []Item.
	Value any
}

// Item is a named text, such as a statement of the contract.
type Item struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Value returns the value of the fact with a name. It returns nil if the entry has no such fact.
func (e *Entry) Value(name string) any {
	if i := slices.IndexFunc(e.Facts, func(f Fact) bool { return f.Name == name }); i >= 0 {
		return e.Facts[i].Value
	}
	return nil
}

// MarshalJSON encodes the entry as an object. Each fact is a property of that object. Facts
// without a value, and the aliases, are omitted.
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

// isEmpty reports whether a value is an empty string or an empty slice.
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
