package inputfile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/kube-gauntlet/gauntlet/harness/nearest"
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
	pointerPattern = regexp.MustCompile(`(?s)(?:cannot|unable to) unmarshal (?:JSON )?(.+?) into Go (struct \{.*\}|\S+(?: \{\})?)(?: within "([^"]*)")?.*`)
	// timePattern matches the error of package time. The group is the text that was found.
	timePattern = regexp.MustCompile(`parsing time ("(?:[^"\\]|\\.)*")`)
	// mapKeyPattern matches the error of a YAML package about a key that is a list or a mapping.
	mapKeyPattern = regexp.MustCompile(`invalid map key: .*`)
	// keyTwicePattern matches the error of go-json-experiment about a key that occurs twice. The groups are
	// the key, and the place of the object.
	keyTwicePattern = regexp.MustCompile(`duplicate object member name (".+?")(?: within "([^"]*)")?(?: after .*)?$`)
	// characterPattern matches the errors of JSON packages about a character. The groups are the character
	// and its place in the grammar of JSON.
	characterPattern = regexp.MustCompile(`invalid character ('.+') ((?:looking for|after|at start|in|within) .+)`)
	// wordPattern matches the place in the errors of JSON packages about a misspelled word. The group is the
	// word.
	wordPattern = regexp.MustCompile(`in literal (\w+)`)
	// cutPattern matches the errors of JSON packages about a text whose end is missing. The group is the
	// place of the value that has no end.
	cutPattern = regexp.MustCompile(`unexpected (?:EOF|end of JSON input)(?: within "([^"]*)")?`)
	// pointPattern matches the place in the errors of go-json-experiment. The group is the place of the value.
	pointPattern = regexp.MustCompile(`(?: within "([^"]*)")?(?: (?:after|at|before) (?:byte )?offset \d+)?$`)
	// schemePattern matches the error of k8s.io/apimachinery about an unknown kind. The groups are the kind
	// and the version.
	schemePattern = regexp.MustCompile(`no kind "([^"]*)" is registered for version "([^"]*)" in scheme "[^"]*"`)
	// credentialPattern matches the error of client-go about a file that a kubeconfig names. The groups are
	// the field, the path, the name of the cluster or user, and the reason.
	credentialPattern = regexp.MustCompile(`unable to read (\S+) (\S+) for (\S+) due to (?:open \S+: )?([^,\]]+)`)
	// unknownPattern matches the errors of YAML packages about a field that the Go type does not have. The
	// group is the name of the field.
	unknownPattern = regexp.MustCompile(`unknown field "(?:[^"]*\.)?([^".]+)"`)
	// linePattern matches the beginning of the errors of YAML packages. The group is the line.
	linePattern = regexp.MustCompile(`^(?:error parsing, )?line (\d+): `)
	// conflictPattern matches the first line of a merge conflict in git.
	conflictPattern = regexp.MustCompile(`(?m)^<<<<<<< `)
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
	text = schemePattern.ReplaceAllString(text, `found kind "$1" of version "$2"`)
	text = credentialPattern.ReplaceAllString(text, "$1 of $3: $2: $4; expected a readable file")
	text = packagePattern.ReplaceAllString(text, "$1")
	text = mapKeyPattern.ReplaceAllString(text, "found a key that is a list or a mapping; expected a text")
	text = yamlReason(syntaxReason(text))
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

// Locate returns the place of an error of a JSON or YAML package, such as "plan.json:3:14", and its
// [JSONReason]. The argument text is the content of the file at path. Without a line in the error, the
// place is only the path. For an unknown field, the reason suggests a field of the Go value into; the
// value may be nil.
func Locate(path string, text []byte, err error, into any) (place, reason string) {
	reason = JSONReason(err)
	if len(bytes.TrimSpace(text)) == 0 {
		return path, "found an empty file"
	}
	if line := ConflictLine(text); line > 0 {
		return fmt.Sprintf("%s:%d", path, line), Conflict
	}
	if match := linePattern.FindStringSubmatch(reason); match != nil {
		return path + ":" + match[1], strings.TrimPrefix(reason, match[0])
	}
	if match := unknownPattern.FindStringSubmatch(reason); match != nil {
		fields := slices.DeleteFunc(fieldsOf(reflect.TypeOf(into), map[reflect.Type]bool{}), func(name string) bool { return name == match[1] })
		reason += nearest.Suggestion(match[1], fields)
		key := regexp.MustCompile(`(?m)^[\s-]*["']?(` + regexp.QuoteMeta(match[1]) + `)["']?\s*:`)
		if at := key.FindAllSubmatchIndex(text, 2); len(at) == 1 { // with two fields of this name, the place is not certain
			return pointTo(path, text, at[0][2]), reason
		}
	}
	if text, isOther := otherText(text, err); isOther {
		return path + ":1:1", fmt.Sprintf("found the text %.40q; expected an object such as {\"name\": \"value\"}", text)
	}
	offset := -1
	var standard *json.SyntaxError
	var syntactic *jsontext.SyntacticError
	switch {
	case strings.Contains(err.Error(), "YAML"): // the offset is that in the JSON into which a package converts YAML
	case errors.As(err, &standard):
		offset = int(standard.Offset)
		if !strings.Contains(err.Error(), "end of JSON") {
			offset--
		}
	case errors.As(err, &syntactic):
		offset = int(syntactic.ByteOffset)
	}
	if offset < 0 || offset > len(text) {
		return path, reason
	}
	return pointTo(path, text, offset), reason
}

// otherText returns the first line of a text that is not JSON. Such a text begins with no bracket and no brace. The
// error is that of a JSON package about the text.
func otherText(text []byte, err error) (string, bool) {
	var standard *json.SyntaxError
	var syntactic *jsontext.SyntacticError
	if !errors.As(err, &standard) && !errors.As(err, &syntactic) || strings.Contains(err.Error(), "YAML") {
		return "", false
	}
	first, _, _ := strings.Cut(string(bytes.TrimSpace(text)), "\n")
	return first, !strings.HasPrefix(first, "{") && !strings.HasPrefix(first, "[")
}

// Conflict is the error for a text with a merge conflict.
const Conflict = "found a marker of a merge conflict in git; resolve the conflict first"

// ConflictLine returns the line on which the first merge conflict in a text begins. It returns 0 if there is none.
func ConflictLine(text []byte) int {
	at := conflictPattern.FindIndex(text)
	if at == nil {
		return 0
	}
	return bytes.Count(text[:at[0]], []byte("\n")) + 1
}

// pointTo returns the file, line and column of an offset in a text.
func pointTo(path string, text []byte, offset int) string {
	before := text[:offset]
	line := bytes.Count(before, []byte("\n")) + 1
	column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
	return fmt.Sprintf("%s:%d:%d", path, line, column)
}

// SimilarField returns a suggestion for an unknown field of a Go value, such as "; did you mean replicas?". The
// argument path is the path of the field in JSON, such as spec.ports[0].prt. The suggestion is a field of the
// same object, or a field of this name in an object inside. It is empty if there is no such field.
func SimilarField(of any, path string) string {
	parts := strings.Split(path, ".")
	last := len(parts) - 1
	fields := fieldsAt(reflect.TypeOf(of), parts[:last])
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if inner := fieldsAt(fields[name], nil); inner[parts[last]] != nil && fields[name].Kind() != reflect.Slice {
			return "; did you mean " + name + "." + parts[last] + "?"
		}
	}
	return nearest.Suggestion(parts[last], slices.Sorted(maps.Keys(fields)))
}

// fieldsAt returns the fields that a Go type has at a path, such as "rules[0]", by their names in JSON.
func fieldsAt(t reflect.Type, path []string) map[string]reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	fields := map[string]reflect.Type{}
	for field := range t.Fields() {
		switch name, _, _ := strings.Cut(field.Tag.Get("json"), ","); {
		case name != "" && name != "-":
			fields[name] = field.Type
		case field.Anonymous:
			maps.Copy(fields, fieldsAt(field.Type, nil))
		}
	}
	if len(path) == 0 {
		return fields
	}
	part, _, _ := strings.Cut(path[0], "[")
	if fields[part] == nil {
		return nil
	}
	return fieldsAt(fields[part], path[1:])
}

// fieldsOf returns the names in JSON of the fields of a Go type, and of the types of these fields. The map
// seen has the types that need no second visit.
func fieldsOf(goType reflect.Type, seen map[reflect.Type]bool) []string {
	if goType == nil || seen[goType] {
		return nil
	}
	seen[goType] = true
	var names []string
	fields := fieldsAt(goType, nil)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		names = append(append(names, name), fieldsOf(fields[name], seen)...)
	}
	return names
}

// jsonExpectations has, for a part of an error about a character in JSON, what is valid there.
var jsonExpectations = []struct{ place, expected string }{
	{"beginning of value", "a value, such as a text in double quotes"},
	{"start of value", "a value, such as a text in double quotes"},
	{"beginning of object key", "a key in double quotes"},
	{"start of string", "a key in double quotes"},
	{"after object key:value pair", "',' or '}'"},
	{"after object key", "':'"},
	{"after object name", "':'"},
	{"after object value", "',' or '}'"},
	{"after array element", "',' or ']'"},
	{"after top-level value", "the end of the file"},
	{"escape code", "an escape such as \\n"},
	{"hexadecimal", "a hexadecimal digit"},
	{"in string", "an escape such as \\n"},
	{"number", "a digit"},
	{"numeric literal", "a digit"},
}

// yamlReasons has, for the errors of YAML packages, what was found and expected.
var yamlReasons = []struct{ pattern, reason string }{
	{`did not find expected node content`, "found a character at which no value begins; expected a value, a text in quotes, or the end of an open bracket or brace"},
	{`did not find expected ',' or '\]'`, "found no end of the list in brackets; expected ',' or ']'"},
	{`did not find expected ',' or '\}'`, "found no end of the mapping in braces; expected ',' or '}'"},
	{`did not find expected alphabetic or numeric character`, `found * or & outside of quotes; expected the text in quotes, such as "*"`},
	{`did not find expected key`, "found a line that is no field; expected the indentation of the fields beside it, and a space after each colon"},
	{`did not find expected '-' indicator`, "found a line that is no item of the list; expected '-' before each item"},
	{`mapping values are not allowed in this context`, "found a ':' where no field may begin; expected the indentation of the fields beside it, or a text in quotes"},
	{`block sequence entries are not allowed in this context`, "found an item of a list behind other text; expected each item in a line of its own"},
	{`found character that cannot start any token`, "found a character that begins no value; expected a text in quotes, and spaces as indentation"},
	{`found a tab character that violates indentation`, "found a tab as indentation; expected spaces"},
	{`could not find expected ':'`, "found a line without ':'; expected a field such as name: web"},
	{`found unexpected end of stream`, "found no end of the text in quotes; expected a closing quote"},
	{`found unknown escape character`, "found an unknown escape; expected a text in single quotes"},
	{`did not find expected <document start>`, "found text after the end of the document; expected one document"},
	{`unknown anchor '(.*)' referenced`, "found the alias *$1 without an anchor &$1; expected the value itself"},
	{`key ("[^"]*") already set in map`, "found the key $1 twice; expected each key once"},
}

// yamlPatterns returns the compiled patterns of yamlReasons.
var yamlPatterns = sync.OnceValue(func() (all []*regexp.Regexp) {
	for _, known := range yamlReasons {
		all = append(all, regexp.MustCompile(`(?:while parsing [^:]*: )?\b`+known.pattern))
	}
	return all
})

// yamlReason replaces the first known error of a YAML package in a text.
func yamlReason(text string) string {
	for i, pattern := range yamlPatterns() {
		if pattern.MatchString(text) {
			return pattern.ReplaceAllString(text, yamlReasons[i].reason)
		}
	}
	return text
}

// syntaxReason replaces what a JSON package says about its grammar by what was found and expected.
func syntaxReason(text string) string {
	if match := cutPattern.FindStringSubmatch(text); match != nil {
		within := ""
		if match[1] != "" {
			within = " inside " + match[1]
		}
		return "found the end of the file" + within + "; expected more text, because the file is cut off"
	}
	match := characterPattern.FindStringSubmatch(text)
	if match == nil {
		return text
	}
	within := pointPattern.FindStringSubmatch(match[2])[1]
	expected := "valid JSON"
	if word := wordPattern.FindStringSubmatch(match[2]); word != nil {
		expected = "the word " + word[1] + ", or a text in double quotes"
	}
	for _, known := range jsonExpectations {
		if strings.Contains(match[2], known.place) {
			expected = known.expected
			break
		}
	}
	if within != "" {
		within = " inside " + within
	}
	return fmt.Sprintf("found the character %s%s; expected %s", match[1], within, expected)
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
		{"v1.Time", "a time such as 2006-01-02T15:04:05Z"}, {"intstr.IntOrString", "a whole number or a text"}, {"resource.Quantity", "a quantity such as 500m, 2 or 1Gi"}, {"time.Time", "a time such as 2006-01-02T15:04:05Z"}, {"time.Duration", "a whole number"}, {"history.Version", "a whole number, 0 or more"},
		{"[]uint8", "a text in base64"}, {"[]", "a list"}, {"slice", "a list"}, {"map", "an object"}, {"struct", "an object"},
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
