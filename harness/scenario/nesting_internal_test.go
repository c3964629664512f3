package scenario

import (
	"strings"
	"testing"
)

// TestFindCostly checks that the scan finds deep nesting and large mappings, and that it takes no text for it.
func TestFindCostly(t *testing.T) {
	var stairs strings.Builder
	for i := range 70 {
		stairs.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	fields := func(indent string) string {
		return indent + strings.TrimSpace(strings.Repeat("a: 1\n"+indent, fieldLimit))
	}
	const deep, large = tooDeep, "found a mapping of more than"
	for _, test := range []struct{ name, text, want string }{
		{"60 levels", "a: " + strings.Repeat("[", 60) + strings.Repeat("]", 60), ""},
		{"61 levels", "a: " + strings.Repeat("[", 61) + strings.Repeat("]", 61), deep},
		{"one after the other", strings.Repeat("- [{a: 1}]\n", 100), ""},
		{"indentation", stairs.String(), deep},
		{"question marks", strings.Repeat("? ", 70), deep},
		{"double quotes", `a: "` + strings.Repeat(`[\"`, 70) + `"`, ""},
		{"after double quotes", `a: "x": ` + strings.Repeat("[", 70), deep},
		{"single quotes", "a: 'it''s " + strings.Repeat("[", 70) + "'", ""},
		{"an apostrophe", "a: it's\nb: " + strings.Repeat("[", 70), deep},
		{"quotes of several lines", "a: 'x\n" + strings.Repeat("[\n", 70) + "'", ""},
		{"a comment", "a: 1 # " + strings.Repeat("[", 70), ""},
		{"no comment", "a#b: " + strings.Repeat("[", 70), deep},
		{"a block text", "a: |\n" + stairs.String()[3:] + "  " + strings.Repeat("[", 70), ""},
		{"after a block text", "a: >-\n  [[[\n\n  [\nb: " + strings.Repeat("[", 70), deep},
		{"an unclosed quote", "a: \"" + strings.Repeat("[", 70), ""},
		{"a tag", "a: !x " + strings.Repeat("{", 70), deep},
		{"nothing", "", ""},
		{"a large mapping", fields("") + "\nb:\n" + fields("  "), large},
		{"largest mappings", "a:\n" + fields("  ") + "\nb:\n" + fields(" "), ""},
		{"a large mapping in a list", "- " + fields("  ")[2:] + "\n  b: 1", large},
		{"a long list", strings.Repeat("- a: 1\n", 2*fieldLimit), ""},
		{"a long text", "a: " + strings.Repeat("b\n  b:c\n", 2*fieldLimit), ""},
	} {
		if at, got := findCostly([]byte(test.text)); (got == "") != (test.want == "") || !strings.HasPrefix(got, test.want[:min(20, len(test.want))]) {
			t.Errorf("%s: %q, at %v; want %q", test.name, got, at, test.want)
		}
	}
}
