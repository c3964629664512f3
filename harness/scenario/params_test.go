package scenario

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// settings is a struct of parameters. It has a field for every Go type that parameters of faults
// use.
type settings struct {
	Verb     string            `yaml:"verb"`
	Code     int32             `yaml:"code"`
	Chance   float64           `yaml:"chance"`
	Every    time.Duration     `yaml:"every"`
	Orphans  bool              `yaml:"orphans"`
	Times    *uint             `yaml:"times"`
	Names    []string          `yaml:"names"`
	Selector map[string]string `yaml:"selector"`
	Nested   struct {
		Depth int `yaml:"depth"`
	} `yaml:"nested"`
	Hidden string `yaml:"-"`
}

func TestParamsDecode(t *testing.T) {
	params, err := ParseParams("p.yaml", "api-error", []byte(`verb: create
code: 0x1F4
chance: 1
every: 1m30s
orphans: true
times: 3
names: [a, b]
selector: {app: web}
nested: {depth: 2}
`))
	if err != nil {
		t.Fatal(err)
	}
	var got settings
	if err := params.Decode(&got); err != nil {
		t.Fatal(err)
	}
	times := uint(3)
	want := settings{Verb: "create", Code: 500, Chance: 1, Every: 90 * time.Second, Orphans: true, Times: &times,
		Names: []string{"a", "b"}, Selector: map[string]string{"app": "web"}}
	want.Nested.Depth = 2
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("decoded (-want +got):\n%s", diff)
	}
}

func TestParamsDecodeKeepsDefaults(t *testing.T) {
	params, err := ParseParams("p.yaml", "api-error", []byte("nested: {}\nverb: get\n"))
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]Params{"some": params, "none": {}} {
		got := settings{Code: 500, Every: time.Second}
		got.Nested.Depth = 7
		want := got
		if name == "some" {
			want.Verb = "get"
		}
		if err := p.Decode(&got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s decoded (-want +got):\n%s", name, diff)
		}
	}
}

func TestParamsDecodeErrors(t *testing.T) {
	for _, test := range []struct{ name, input, want string }{
		{"unknown", "verbs: get", `p.yaml:1:1: api-error: unknown field "verbs"; expected verb, code, chance, every, orphans, times, names, selector or nested; did you mean verb?`},
		{"hidden", "Hidden: x", `p.yaml:1:1: api-error: unknown field "Hidden"; expected verb, code, chance, every, orphans, times, names, selector or nested`},
		{"duration", "verb: get\nevery: 5", "p.yaml:2:8: api-error.every: found 5; expected a duration such as 500ms, 8s or 1m30s"},
		{"overflow", "code: 3000000000", "p.yaml:1:7: api-error.code: found 3000000000; expected a whole number"},
		{"huge", "code: 18446744073709551615", "p.yaml:1:7: api-error.code: found 18446744073709551615; expected a whole number"},
		{"negative", "times: -1", "p.yaml:1:8: api-error.times: found -1; expected a whole number, 0 or more"},
		{"number", "chance: often", `p.yaml:1:9: api-error.chance: found "often"; expected a number`},
		{"not a number", "chance: .nan", "p.yaml:1:9: api-error.chance: found .nan; expected a number"},
		{"infinite", "verb: -.inf", "p.yaml:1:7: api-error.verb: found -.inf; expected text (quote a value such as 7 or true)"},
		{"truth", "orphans: 1", "p.yaml:1:10: api-error.orphans: found 1; expected true or false"},
		{"item", "names: [a, {}]", "p.yaml:1:12: api-error.names[1]: found a mapping; expected text"},
		{"nested", "nested: {deep: 1}", `p.yaml:1:10: api-error.nested: unknown field "deep"; expected depth`},
		{"no mapping", "[]", "p.yaml:1:1: api-error: found a list; expected a mapping"},
	} {
		params, err := ParseParams("p.yaml", "api-error", []byte(test.input))
		if err == nil {
			err = params.Decode(new(settings))
		}
		if err == nil || err.Error() != test.want {
			t.Errorf("%s:\n got %v\nwant %s", test.name, err, test.want)
		}
	}
}

// TestExpecting checks that an error about a value of the wrong type says what the parameter permits.
func TestExpecting(t *testing.T) {
	for input, want := range map[string]string{
		"how: 0":                              "found 0; expected one of kill, terminate",
		"how:":                                "found nothing; expected one of kill, terminate",
		"how: [kill]":                         "found a list; expected one of kill, terminate",
		"selector: {app: web, tier: front}":   "found a mapping; expected a text such as app=web,tier=front",
		"selector: {matchLabels: {app: web}}": "found a mapping; expected a text such as app=web",
		"selector: [app]":                     "found a list; expected a label selector",
		"selector: 7":                         "found 7; expected text (quote a value such as 7 or true)",
		"labels: app=web":                     `found "app=web"; expected a mapping such as {app: web}`,
		"labels: [app]":                       "found a list; expected a mapping such as {name: value}",
		"labels: {matchLabels: {app: web}}":   "found matchLabels; expected the labels themselves, such as {app: web}",
		"labels: {matchExpressions: [{key: app}]}": "found matchExpressions; expected the labels themselves",
	} {
		params, err := ParseParams("p.yaml", "restart", []byte(input))
		if err != nil {
			t.Fatal(err)
		}
		into := struct {
			How      string            `yaml:"how"`
			Selector string            `yaml:"selector"`
			Labels   map[string]string `yaml:"labels"`
		}{}
		err = params.Expecting(map[string]string{"how": "one of kill, terminate", "selector": "a label selector"}).Decode(&into)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n got %v\nwant …%s", input, err, want)
		}
	}
}

// TestParamsDecodeMisuse checks that wrong arguments of Decode give errors and do not panic.
func TestParamsDecodeMisuse(t *testing.T) {
	params, err := ParseParams("p.yaml", "api-error", []byte("verb: get\n"))
	if err != nil {
		t.Fatal(err)
	}
	for name, into := range map[string]any{
		"a struct":      settings{},
		"nil":           nil,
		"a nil pointer": (*settings)(nil),
		"an unsuited field": &struct {
			Verb chan int `yaml:"verb"`
		}{},
	} {
		if err := params.Decode(into); err == nil {
			t.Errorf("decoding into %s gave no error", name)
		}
	}
}
