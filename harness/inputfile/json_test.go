package inputfile

import (
	stdjson "encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"sigs.k8s.io/yaml"
)

// Embedded is a struct that the test embeds in another one.
type Embedded struct {
	End []int `json:"end"`
}

// kind is a text of a named type.
type kind string

type decoded struct {
	Embedded
	Schema int   `json:"schema"`
	Cells  []int `json:"cells"`

	At   time.Time `json:"at"`
	Kind kind      `json:"kind"`
	Spec struct {
		Replicas *int `json:"replicas"`
	} `json:"spec"`
}

// TestJSONReason checks that the texts of three packages contain no names of Go types.
func TestJSONReason(t *testing.T) {
	standard := func(text string) error { return stdjson.Unmarshal([]byte(text), new(decoded)) }
	experiment := func(text string) error { return json.Unmarshal([]byte(text), new(decoded)) }
	base64 := func(text string) error {
		var into struct {
			CA []byte `json:"ca"`
		}
		return stdjson.Unmarshal([]byte(text), &into)
	}
	strictYAML := func(text string) error { return yaml.UnmarshalStrict([]byte(text), new(decoded)) }
	for _, test := range []struct {
		name string
		err  error
		want string
	}{
		{"a field", standard(`{"schema": "x"}`), "found string at schema; expected a whole number"},
		{"an item", standard(`{"cells": [1.5]}`), "found number 1.5 at cells; expected a whole number"},
		{"the top", standard(`[]`), "found array at the top; expected an object"},
		{"an embedded field", standard(`{"end": "x"}`), "found string at end; expected a list"},
		{"a field in YAML", strictYAML("end: x"), "found string at end; expected a list"},
		{"the top in YAML", strictYAML("x"), "found string at the top; expected an object"},
		{"an unknown field in YAML", strictYAML("start: x"), `unknown field "start"`},
		{"a key twice in YAML", strictYAML("end: []\nend: []"), `line 2: key "end" already set in map`},
		{"a list as a key in YAML", strictYAML("? [a]\n: 1"), "found a key that is a list or a mapping; expected a text"},
		{"a syntax error in YAML", strictYAML("a: [\nb: 1"), "line 2: did not find expected ',' or ']'"},
		{"a syntax error", standard(`#`), "found the character '#' looking for beginning of value"},
		{"a time", standard(`{"at": "x"}`), `found "x"; expected a time such as 2006-01-02T15:04:05Z`},
		{"a number that is too large", experiment(`{"schema": 1e30}`), "found number 1e30 at /schema; expected a whole number"},
		{"the name of a file", errors.New("json: reading x.yaml: is a directory"), "reading x.yaml: is a directory"},
		{"a duration", errors.New(`json: cannot unmarshal JSON string into Go time.Duration within "/within"`), "found string at /within; expected a whole number"},
		{"a version", errors.New(`json: cannot unmarshal JSON number -7 into Go history.Version within "/commit/object/version"`), "found number -7 at /commit/object/version; expected a whole number, 0 or more"},
		{"a number as a time", experiment(`{"at": 1}`), "found number at /at; expected a time such as 2006-01-02T15:04:05Z"},
		{"a number as a time of another package", standard(`{"at": 1}`), "found a time that is not a text; expected a time such as 2006-01-02T15:04:05Z"},
		{"a text of a named type", standard(`{"kind": 1}`), "found number at kind; expected a text"},
		{"a text of a named type of another package", experiment(`{"kind": []}`), "found array at /kind; expected a text"},
		{"a key twice", experiment(`{"spec": {"replicas": 1, "replicas": 2}}`), `found the key "replicas" twice at /spec; expected each key once`},
		{"other words", errors.New(`json: unable to unmarshal JSON number into Go []int within "/cells"`), "found number at /cells; expected a list"},
		{"a directive in YAML", strictYAML("%YAML 1.2\n---\nend: []\n"), "found the directive of another version of YAML; expected %YAML 1.1, or no directive"},
		{"base64", base64(`{"ca": "!"}`), "found a text that is not base64, which fields such as certificate-authority-data need, at input byte 0"},
		{"a struct without a name", experiment(`{"spec": 1}`), "found number at /spec; expected an object"},
		{"another top", experiment(`[]`), "found array at the top; expected an object"},
	} {
		if got := JSONReason(test.err); got != test.want {
			t.Errorf("%s: got %s, want %s; error %v", test.name, got, test.want, test.err)
		}
	}
}
