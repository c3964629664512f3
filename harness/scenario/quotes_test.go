package scenario

import (
	"fmt"
	"strings"
	"testing"
)

// TestUnquoted checks the error about a value that needs quotes in YAML. It also checks that other errors of YAML have
// no advice about quotes.
func TestUnquoted(t *testing.T) {
	const needs = "x.yaml:1:7: the file is not valid YAML: found "
	begins := func(value, quoted string) string {
		return fmt.Sprintf("%s%s, which begins with %.1s; expected quotes around the whole value, such as %s", needs, value, value, quoted)
	}
	for _, test := range []struct{ value, want string }{
		{"*", begins("*", `"*"`)},
		{"*web", begins("*web", `"*web"`)},
		{"*web # any", begins("*web", `"*web"`)},
		{"&web", begins("&web", `"&web"`)},
		{"!web", begins("!web", `"!web"`)},
		{"@web", begins("@web", `"@web"`)},
		{"%web", begins("%web", `"%web"`)},
		{"%web of a shop", begins("%web of a shop", `"%web of a shop"`)},
		{"'it's'", begins("'it's'", `"it's"`)},
		{"x\nseed:\u00a01", "x.yaml:2:6: found a non-breaking space (U+00A0) after the colon; expected a normal colon and a normal space"},
		{"x\nworkload：1", "x.yaml:2:9: found a full-width colon (U+FF1A); expected a normal colon and a normal space"},
		{"x\nworkload:\n  -scale: {}", "x.yaml:3:3: workload: found a mapping; expected a list, whose items begin with - and a space"},
		{"`web`", begins("`web`", "\"`web`\"")},
		{"[a-c]*", begins("[a-c]*", `"[a-c]*"`)},
		{"{web}-x", begins("{web}-x", `"{web}-x"`)},
		{"'web'-*", begins("'web'-*", `"web-*"`)},
		{">web", begins(">web", `">web"`)},
		{"? ", begins("?", `"?"`)},
		{"[web", needs + "[ without a closing ]; expected ], or quotes around a text with ["},
		{"{web", needs + "{ without a closing }; expected }, or quotes around a text with {"},
		{"[web\nworkload: [{}]", needs + "[ without a closing ]; expected ], or quotes around a text with ["},
		{"- web", needs[:len(needs)-6] + "block sequence entries are not allowed in this context; expected the items of a list in lines of their own, or quotes around a text that begins with -"},
		{"&n web", "x.yaml:1:7: YAML anchors and aliases are not supported; repeat the value"},
		{"!!str web", "x.yaml:1:7: YAML tags are not supported; remove the tag"},
		{"'web", needs[:len(needs)-6] + "could not find end character of single-quoted text; expected a closing quote"},
	} {
		_, err := Parse("x.yaml", []byte("name: "+test.value+"\n"))
		if fmt.Sprint(err) != test.want {
			t.Errorf("%s:\n got %v\nwant %s", test.value, err, test.want)
		}
	}
	if _, err := Parse("x.yaml", []byte(minimal+"  - create: {kind: ConfigMap, name: a, manifest: {data: {\"a b\": null, c=d: null, e: null}}}\n")); err != nil {
		t.Error(err)
	}
	for _, value := range []string{"?-web", "'*'", `"[a-c]*"`, "web-*", "a'b'c", "|\n  text", ">-\n  text", "a[b", "c}"} {
		_, err := Parse("x.yaml", []byte(strings.Replace(minimal, "description: ", "description: "+value+"\n#", 1)))
		if err != nil {
			t.Errorf("%s: %v", value, err)
		}
	}
}

// TestMisplaced checks errors about fields in a wrong place, and about indentation. Each mistake has one line.
func TestMisplaced(t *testing.T) {
	const head = "name: x\nworkload:\n  - create: {kind: Deployment, name: web, replicas: 1}\n"
	for _, test := range []struct{ text, want string }{
		{head + "\u00a0 - scale: {kind: Deployment, name: web, replicas: 1}\n", "x.yaml:4:1: found a non-breaking space (U+00A0) as indentation, as in text from a web page; expected normal spaces"},
		{head + "faults:\n  - watch-delay: {resource: pods}\n    delay: 1s\n", `x.yaml:6:5: faults[0]: found the fields "delay" and "watch-delay"; expected one fault with its parameters, and optionally when, until, times, from, for and mustFire; write delay below watch-delay`},
		{head + "faults:\n  - pod-churn: {}\n    delay: {a: b}\n", `x.yaml:6:5: faults[0]: found the fields "delay" and "pod-churn"; expected one fault with its parameters, and optionally when, until, times, from, for and mustFire; begin each fault with - in a line of its own`},
		{head + "  - create: {kind: StatefulSet, name: db, replicas: 3}\n", "x.yaml:4:53: workload[1].create.replicas: a create of kind StatefulSet has no field replicas; expected only the fields kind, name, apiVersion or manifest; write it below manifest, such as manifest: {spec: {replicas: 3}}"},
		{head + "  - create: {kind: StatefulSet, name: db}\n", "x.yaml:4:13: workload[1].create.manifest: found nothing; expected the fields of the StatefulSet, such as spec"},
		{head + "  - create: {kind: ConfigMap, name: c, manifest: {data: {a: \"\u00a0b\"}}}\n", "<nil>"},
	} {
		if _, err := Parse("x.yaml", []byte(test.text)); fmt.Sprint(err) != test.want {
			t.Errorf("%q:\n got %v\nwant %s", test.text, err, test.want)
		}
	}
}

// TestLineEndings checks the positions in errors about files with other line endings than \n.
func TestLineEndings(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"name: x # note\r\nworkload", `x.yaml:2:1: the file is not valid YAML: non-map value is specified; expected a field such as name: web`},
		{"name: x # note\r\nworkload\r\n  - create: {}\r\n", `x.yaml:2:1: the file is not valid YAML: found workload without a colon; expected workload:`},
		{"name: x # note\r\ndescription: *web\r\n", `x.yaml:2:14: the file is not valid YAML: found *web, which begins with *; expected quotes around the whole value, such as "*web"`},
		{"name: x # note\r\n\tworkload: [\r\n", `x.yaml:2:1: the file is not valid YAML: found a tab as indentation; expected spaces`},
		{"name: x # note\rworkload", `x.yaml:2:1: the file is not valid YAML: non-map value is specified; expected a field such as name: web`},
	} {
		if _, err := Parse("x.yaml", []byte(test.text)); fmt.Sprint(err) != test.want {
			t.Errorf("%q:\n got %v\nwant %s", test.text, err, test.want)
		}
	}
}
