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
		{"a key twice in YAML", strictYAML("end: []\nend: []"), `line 2: found the key "end" twice; expected each key once`},
		{"a list as a key in YAML", strictYAML("? [a]\n: 1"), "found a key that is a list or a mapping; expected a text"},
		{"a syntax error in YAML", strictYAML("a: [\nb: 1"), "line 2: found no end of the list in brackets; expected ',' or ']'"},
		{"another syntax error in YAML", strictYAML("a: b: c"), "found a ':' where no field may begin; expected the indentation of the fields beside it, or a text in quotes"},
		{"no value in YAML", strictYAML("a: ]"), "found a character at which no value begins; expected a value, a text in quotes, or the end of an open bracket or brace"},
		{"no colon in YAML", strictYAML("a: 1\nb"), "line 3: found a line without ':'; expected a field such as name: web"},
		{"a tab in YAML", strictYAML("a:\n\t- b"), "line 2: found a character that begins no value; expected a text in quotes, and spaces as indentation"},
		{"no closing quote in YAML", strictYAML("a: \"b"), "found no end of the text in quotes; expected a closing quote"},
		{"a syntax error", standard(`#`), "found the character '#'; expected a value, such as a text in double quotes"},
		{"a key without quotes", standard(`{a: 1}`), "found the character 'a'; expected a key in double quotes"},
		{"no colon", standard(`{"a" 1}`), "found the character '1'; expected ':'"},
		{"no comma", standard(`{"a": 1 "b": 2}`), "found the character '\"'; expected ',' or '}'"},
		{"no comma in a list", standard(`[1 2]`), "found the character '2'; expected ',' or ']'"},
		{"two values", standard(`{} {}`), "found the character '{'; expected the end of the file"},
		{"a wrong word", standard(`{"a": nil}`), "found the character 'i'; expected the word null, or a text in double quotes"},
		{"a wrong number", standard(`{"a": -x}`), "found the character 'x'; expected a digit"},
		{"a wrong escape", standard(`{"a": "\x"}`), "found the character 'x'; expected an escape such as \\n"},
		{"a newline in a text", standard("{\"a\": \"\n\"}"), `found the character '\n'; expected an escape such as \n`},
		{"cut off", standard(`{"a": `), "found the end of the file; expected more text, because the file is cut off"},
		{"a syntax error of another package", experiment(`{"spec": {"replicas": g}}`), "found the character 'g' inside /spec/replicas; expected a value, such as a text in double quotes"},
		{"no comma of another package", experiment(`{"spec": {} "end": 1}`), "found the character '\"'; expected ',' or '}'"},
		{"a key without quotes of another package", experiment(`{a: 1}`), "found the character 'a'; expected a value, such as a text in double quotes"},
		{"two values of another package", experiment(`{} x`), "found the character 'x'; expected the end of the file"},
		{"cut off, of another package", experiment(`{"spec": {"replicas"`), "found the end of the file inside /spec/replicas; expected more text, because the file is cut off"},
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
		{"a kind that is not registered", errors.New(`no kind "Pod" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"`), `found kind "Pod" of version "v1"`},
		{"a file of a kubeconfig", errors.New("unable to read certificate-authority /ca for a due to open /ca: no such file or directory"), "certificate-authority of a: /ca: no such file or directory; expected a readable file"},
		{"base64", base64(`{"ca": "!"}`), "found a text that is not base64, which fields such as certificate-authority-data need, at input byte 0"},
		{"a struct without a name", experiment(`{"spec": 1}`), "found number at /spec; expected an object"},
		{"another top", experiment(`[]`), "found array at the top; expected an object"},
	} {
		if got := JSONReason(test.err); got != test.want {
			t.Errorf("%s: got %s, want %s; error %v", test.name, got, test.want, test.err)
		}
	}
}

// TestLocate checks the line and column of errors.
func TestLocate(t *testing.T) {
	standard := func(text string) error { return stdjson.Unmarshal([]byte(text), new(decoded)) }
	experiment := func(text string) error { return json.Unmarshal([]byte(text), new(decoded)) }
	strictYAML := func(text string) error { return yaml.UnmarshalStrict([]byte(text), new(decoded)) }
	for _, test := range []struct {
		name, text    string
		decode        func(string) error
		place, reason string
	}{
		{"an empty file", " \n", standard, "f", "found an empty file"},
		{"a syntax error", "{\n  \"ä\": x}", standard, "f:2:8", "found the character 'x'; expected a value, such as a text in double quotes"},
		{"a syntax error of another package", "{\n  \"ä\": x}", experiment, "f:2:8", "found the character 'x' inside /ä; expected a value, such as a text in double quotes"},
		{"no JSON", "\nnot json\n", standard, "f:1:1", `found the text "not json"; expected an object such as {"name": "value"}`},
		{"no JSON, of another package", "not json", experiment, "f:1:1", `found the text "not json"; expected an object such as {"name": "value"}`},
		{"cut off", "{\n\"a\": ", standard, "f:2:6", "found the end of the file; expected more text, because the file is cut off"},
		{"cut off, of another package", "{\n\"a\": ", experiment, "f:2:6", "found the end of the file inside /a; expected more text, because the file is cut off"},
		{"a wrong type", `{"schema": "x"}`, standard, "f", "found string at schema; expected a whole number"},
		{"an unknown field in YAML", "kind: x\nspec:\n  replica: 1", strictYAML, "f:3:3", `unknown field "replica"; did you mean replicas?`},
		{"another unknown field in YAML", "unlike: x", strictYAML, "f:1:1", `unknown field "unlike"`},
		{"YAML", "a: [\nb: 1", strictYAML, "f:2", "found no end of the list in brackets; expected ',' or ']'"},
	} {
		place, reason := Locate("f", []byte(test.text), test.decode(test.text), new(decoded))
		if place != test.place || reason != test.reason {
			t.Errorf("%s: got %s: %s, want %s: %s", test.name, place, reason, test.place, test.reason)
		}
	}
}
