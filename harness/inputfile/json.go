package inputfile

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"unicode"
)

// DigitsMax is the number of decimal digits that every integer of 64 bits can have.
const DigitsMax = 18

// These patterns match the errors of JSON and YAML packages.
var (
	// structPattern matches the error of encoding/json about a value of the wrong type. An example
	// is "json: cannot unmarshal string into Go struct field file.Baseline.end of type int". The
	// groups are the value that was found, its place in the text, and the Go type.
	structPattern = regexp.MustCompile(`(?s)cannot unmarshal (.+?) into Go (?:struct field [^. ]*\.?(\S*) of|value of) type (.+)`)
	// pointerPattern matches the same error of go-json-experiment, such as "json: cannot unmarshal
	// JSON number 1e30 into Go int within "/at"". That package says "unable to" in place of "cannot"
	// in some processes. The groups are the value, the Go type, and the place.
	pointerPattern = regexp.MustCompile(`(?s)(?:cannot|unable to) unmarshal (?:JSON )?(.+?) into Go (struct \{.*\}|\S+)(?: within "([^"]*)")?.*`)
	// timePattern matches the error of package time. The group is the text that was found.
	timePattern = regexp.MustCompile(`parsing time ("(?:[^"\\]|\\.)*")`)
	// mapKeyPattern matches the error of a YAML package about a key that is a list or a mapping.
	mapKeyPattern = regexp.MustCompile(`invalid map key: .*`)
	// keyTwicePattern matches the error of go-json-experiment about a key that occurs twice. The groups are
	// the key, and the place of the object.
	keyTwicePattern = regexp.MustCompile(`duplicate object member name (".+?")(?: within "([^"]*)")?(?: after .*)?$`)
	// characterPattern matches the error of encoding/json about a character. The groups are the
	// character and its place.
	characterPattern = regexp.MustCompile(`invalid character ('.+') (.+)`)
	// packagePattern matches what errors say about their package.
	packagePattern = regexp.MustCompile(`(^|\s)(?:(?:error unmarshaling JSON|error converting YAML to JSON|while decoding JSON|json parse error|couldn't get version/kind|json|jsontext|yaml)(?:: unmarshal errors)?:\s+)+`)
)

// JSONReason returns the text of an error of a JSON or YAML package in one line. The text has no
// names of Go types, which users do not know. An example is "found string at end; expected a whole
// number".
func JSONReason(err error) string {
	text := err.Error()
	if match := structPattern.FindStringSubmatch(text); match != nil {
		return wrongType(match[1], withoutEmbedded(match[2]), cmp.Or(expectedOf(err), expectedValue(match[3])))
	}
	if match := pointerPattern.FindStringSubmatch(text); match != nil {
		return wrongType(match[1], match[3], cmp.Or(expectedOf(err), expectedValue(match[2])))
	}
	if match := keyTwicePattern.FindStringSubmatch(text); match != nil {
		return fmt.Sprintf("found the key %s twice at %s; expected each key once", match[1], cmp.Or(match[2], "the top"))
	}
	if match := timePattern.FindStringSubmatch(text); match != nil {
		return "found " + match[1] + "; expected a time such as 2006-01-02T15:04:05Z"
	}
	text = strings.ReplaceAll(text, "illegal base64 data", "found a text that is not base64, which fields such as certificate-authority-data need,")
	text = strings.ReplaceAll(text, "found incompatible YAML document", "found the directive of another version of YAML; expected %YAML 1.1, or no directive")
	text = strings.ReplaceAll(text, "Time.UnmarshalJSON: input is not a JSON string", "found a time that is not a text; expected a time such as 2006-01-02T15:04:05Z")
	text = packagePattern.ReplaceAllString(text, "$1")
	text = mapKeyPattern.ReplaceAllString(text, "found a key that is a list or a mapping; expected a text")
	text = characterPattern.ReplaceAllString(text, "found the character $1 $2")
	first, further := "", 0
	for line := range strings.Lines(text) {
		line = strings.Join(strings.Fields(line), " ")
		if first != "" && line != "" && strings.HasPrefix(line, "line ") { // a YAML package lists each mistake in a line
			further++
		} else {
			first = strings.TrimSpace(first + " " + line)
		}
	}
	if further > 0 {
		first += fmt.Sprintf(" (and %d more mistakes)", further)
	}
	return first
}

// wrongType returns the text about a value of the wrong type. The arguments are the value that was
// found, its place, and a text for what was expected.
func wrongType(found, place, expected string) string {
	text := "found " + found + " at " + cmp.Or(place, "the top")
	if expected != "" {
		text += "; expected " + expected
	}
	return text
}

// expectedOf returns a text for the JSON values that the Go type in an error accepts. It returns "" if
// the error contains no Go type, or one that decodes itself.
func expectedOf(err error) string {
	goType := goTypeOf(err)
	if goType == nil {
		return ""
	}
	if known := expectedValue(goType.String()); known != "" || reflect.PointerTo(goType).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return known
	}
	return expectedValue(goType.Kind().String())
}

// goTypeOf returns the Go type in the error of a JSON package about a value of the wrong type. Each of the
// packages has its own type of errors, and one of them does not export it.
func goTypeOf(err error) reflect.Type {
	for ; err != nil; err = errors.Unwrap(err) {
		value := reflect.Indirect(reflect.ValueOf(err))
		if value.Kind() != reflect.Struct {
			continue
		}
		for _, name := range []string{"Type", "GoType"} {
			if field := value.FieldByName(name); field.IsValid() && field.Type() == reflect.TypeFor[reflect.Type]() && !field.IsNil() {
				return field.Interface().(reflect.Type)
			}
		}
	}
	return nil
}

// expectedValue returns a text for the JSON values that a Go type accepts. It returns "" for a type
// that decodes itself.
func expectedValue(goType string) string {
	goType = strings.TrimLeft(goType, "*")
	for _, known := range []struct{ prefix, text string }{
		{"v1.Time", "a time such as 2006-01-02T15:04:05Z"}, {"intstr.IntOrString", "a whole number or a text"}, {"time.Time", "a time such as 2006-01-02T15:04:05Z"}, {"time.Duration", "a whole number"}, {"history.Version", "a whole number, 0 or more"},
		{"[]", "a list"}, {"slice", "a list"}, {"map", "an object"}, {"struct", "an object"},
		{"int", "a whole number"}, {"uint", "a whole number, 0 or more"}, {"float", "a number"}, {"string", "a text"}, {"bool", "true or false"},
	} {
		if strings.HasPrefix(goType, known.prefix) {
			return known.text
		}
	}
	return ""
}

// withoutEmbedded removes the names of embedded Go structs from the path of a field. They begin with
// an upper-case letter, and the names of fields in JSON do not.
func withoutEmbedded(path string) string {
	var names []string
	for name := range strings.SplitSeq(path, ".") {
		if !strings.ContainsFunc(name[:min(1, len(name))], unicode.IsUpper) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ".")
}
