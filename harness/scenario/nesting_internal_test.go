package scenario

import (
	"strings"
	"testing"
)

// TestFindDeepNesting checks that the scan finds deep nesting, and that it takes no text for it.
func TestFindDeepNesting(t *testing.T) {
	var stairs strings.Builder
	for i := range 70 {
		stairs.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	for _, test := range []struct {
		name, text string
		deep       bool
	}{
		{"60 levels", "a: " + strings.Repeat("[", 60) + strings.Repeat("]", 60), false},
		{"61 levels", "a: " + strings.Repeat("[", 61) + strings.Repeat("]", 61), true},
		{"one after the other", strings.Repeat("- [{a: 1}]\n", 100), false},
		{"indentation", stairs.String(), true},
		{"question marks", strings.Repeat("? ", 70), true},
		{"double quotes", `a: "` + strings.Repeat(`[\"`, 70) + `"`, false},
		{"after double quotes", `a: "x": ` + strings.Repeat("[", 70), true},
		{"single quotes", "a: 'it''s " + strings.Repeat("[", 70) + "'", false},
		{"an apostrophe", "a: it's\nb: " + strings.Repeat("[", 70), true},
		{"quotes of several lines", "a: 'x\n" + strings.Repeat("[\n", 70) + "'", false},
		{"a comment", "a: 1 # " + strings.Repeat("[", 70), false},
		{"no comment", "a#b: " + strings.Repeat("[", 70), true},
		{"a block text", "a: |\n" + stairs.String()[3:] + "  " + strings.Repeat("[", 70), false},
		{"after a block text", "a: >-\n  [[[\n\n  [\nb: " + strings.Repeat("[", 70), true},
		{"an unclosed quote", "a: \"" + strings.Repeat("[", 70), false},
		{"a tag", "a: !x " + strings.Repeat("{", 70), true},
		{"nothing", "", false},
	} {
		if at, deep := findDeepNesting([]byte(test.text)); deep != test.deep {
			t.Errorf("%s: deep: %t, at %v; want %t", test.name, deep, at, test.deep)
		}
	}
}
