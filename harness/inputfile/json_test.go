package inputfile

import (
	stdjson "encoding/json"
	"testing"

	"github.com/go-json-experiment/json"
	"sigs.k8s.io/yaml"
)

// Embedded is a struct that the test embeds in another one.
type Embedded struct {
	End []int `json:"end"`
}

type decoded struct {
	Embedded
	Schema int   `json:"schema"`
	Cells  []int `json:"cells"`
}

// TestJSONReason checks that the texts of three packages contain no names of Go types.
func TestJSONReason(t *testing.T) {
	standard := func(text string) error { return stdjson.Unmarshal([]byte(text), new(decoded)) }
	experiment := func(text string) error { return json.Unmarshal([]byte(text), new(decoded)) }
	strictYAML := func(text string) error { return yaml.UnmarshalStrict([]byte(text), new(decoded)) }
	for _, test := range []struct {
		name string
		err  error
		want string
	}{
		{"a field", standard(`{"schema": "x"}`), "found string at schema"},
		{"an item", standard(`{"cells": [1.5]}`), "found number 1.5 at cells"},
		{"the top", standard(`[]`), "found array at the top"},
		{"an embedded field", standard(`{"end": "x"}`), "found string at end"},
		{"a field in YAML", strictYAML("end: x"), "found string at end"},
		{"the top in YAML", strictYAML("x"), "found string at the top"},
		{"an unknown field in YAML", strictYAML("start: x"), `unknown field "start"`},
		{"a number that is too large", experiment(`{"schema": 1e30}`), "found number 1e30 at /schema"},
		{"another top", experiment(`[]`), "found array at the top"},
	} {
		if got := JSONReason(test.err); got != test.want {
			t.Errorf("%s: got %s, want %s; error %v", test.name, got, test.want, test.err)
		}
	}
}
