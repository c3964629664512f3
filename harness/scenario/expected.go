package scenario

import (
	"cmp"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/nearest"
)

// This file has the texts of the decoder about what a file should have instead of a wrong value or field.

// elsewhere returns the end of an error about an unknown parameter of a fault. It says where a field such as for, or an
// operation belongs.
func (d decoder) elsewhere(field, path string) string {
	if d.expected == nil || strings.Contains(path, ".") {
		return "" // not a parameter of a fault
	}
	if field == "duration" && d.expected[path+".delay"] == "" {
		return fmt.Sprintf("; write for: with this value beside %s, not below it", path)
	}
	if _, isOption := new(Fault).options()[field]; isOption {
		return fmt.Sprintf("; write %s beside %s, not below it", field, path)
	}
	if _, isOperation := operationNamed(field); isOperation && d.expected[path+".steps"] != "" {
		return fmt.Sprintf("; write %s in an item of the list steps", field)
	}
	return ""
}

// permitting returns a decoder whose errors about a field say which values the field permits. It returns d for a field that permits
// any value.
func (d decoder) permitting(field reflect.StructField, path string) decoder {
	values := enums[field.Tag.Get("enum")]
	if values == nil {
		values = enums[field.Type.Name()]
	}
	if len(values) > 0 {
		d.expected = map[string]string{path: "one of " + nearest.List(values, "or")}
	}
	return d
}

// exampleOf returns a text with an example of a mapping, for an error. It returns "" if the mapping has other values than
// texts.
func exampleOf(from *node, of reflect.Type) string {
	if of.Kind() != reflect.String {
		return ""
	}
	text, _ := from.value.(string)
	if key, value, ok := strings.Cut(text, "="); ok && !strings.ContainsAny(value, "=,{}") {
		return fmt.Sprintf(" such as {%.60s: %.60s}", key, value)
	}
	return " such as {name: value}"
}

// listExample returns a text with an example of a list, for an error about a value that is no list.
func listExample(from *node, of reflect.Type) string {
	switch text, isText := from.value.(string); {
	case isText && of.Kind() == reflect.String:
		return fmt.Sprintf(" such as [%.60s]", text)
	case startsWithHyphen(from.value):
		return ", whose items begin with - and a space"
	case from.value != nil && of.Kind() == reflect.Struct:
		return ", whose items begin with -"
	}
	return ""
}

// startsWithHyphen reports whether the first key of a mapping begins with a hyphen, as an item of a list does.
func startsWithHyphen(value any) bool {
	fields, _ := value.(mapping)
	return len(fields) > 0 && strings.HasPrefix(fields[0].name, "-")
}

// bounds returns a text about the numbers that a parameter permits, or "" if it is not known.
func (d decoder) bounds(path string) string {
	if known := d.expected[path]; known != "" {
		return ": " + known
	}
	return ""
}

// withoutQuotes returns a text about a number in quotes or with a unit. It returns "" for any other value.
func withoutQuotes(from *node) string {
	text, _ := from.value.(string)
	switch _, err := strconv.ParseInt(text, 10, 64); {
	case err == nil:
		return " without quotes"
	case durationPattern.MatchString(text):
		return " without a unit"
	}
	return ""
}

// boolQuotes returns a text about true or false in quotes, or "" for any other value.
func boolQuotes(value any) string {
	if value == "true" || value == "false" {
		return " without quotes"
	}
	return ""
}

// expectedText returns what a file should have instead of a value that is no text.
func (d decoder) expectedText(from *node, path string) string {
	known := d.expected[path]
	if strings.HasPrefix(known, "such as ") {
		known = "a text " + known
	}
	switch v := from.value.(type) {
	case mapping:
		if labels, ok := v.labels(); ok && strings.Contains(known, "selector") {
			return "a text such as " + labels
		}
		return cmp.Or(known, "text")
	case sequence:
		return cmp.Or(known, "one text")
	case nil:
		return cmp.Or(known, "text")
	}
	if strings.HasPrefix(known, "one of ") {
		return known
	}
	return "text (quote a value such as 7 or true)"
}

// labels returns a mapping of labels in the form of a label selector, such as app=web. The result ok is false if the
// mapping has other values than texts.
func (m mapping) labels() (selector string, ok bool) {
	if inner := m.field("matchLabels"); inner != nil && len(m) == 1 {
		m, _ = inner.value.(mapping)
	}
	var words []string
	for _, field := range m {
		text, isText := field.value.value.(string)
		if !isText {
			return "", false
		}
		words = append(words, field.name+"="+text)
	}
	return strings.Join(words, ","), len(words) > 0
}
