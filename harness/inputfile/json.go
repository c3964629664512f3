package inputfile

import (
	"cmp"
	"regexp"
	"strings"
	"unicode"
)

// These patterns match the errors of JSON packages about a value of the wrong type. The groups are
// the value that was found, and its place in the text.
var (
	// structPattern matches the error of encoding/json, such as "json: cannot unmarshal string into
	// Go struct field file.Baseline.end of type int".
	structPattern = regexp.MustCompile(`cannot unmarshal (.+) into Go (?:struct field [^. ]*\.?(\S*) of|value of) type .+`)
	// pointerPattern matches the error of go-json-experiment, such as "json: cannot unmarshal JSON
	// number 1e30 into Go int within "/at"".
	pointerPattern = regexp.MustCompile(`cannot unmarshal (?:JSON )?(.+) into Go \S+(?: within "([^"]*)")?.*`)
)

// JSONReason returns the text of an error of a JSON or YAML package without the names of Go types.
// Users do not know these types. An example is "found string at end".
func JSONReason(err error) string {
	text := err.Error()
	if match := structPattern.FindStringSubmatch(text); match != nil {
		return "found " + match[1] + " at " + cmp.Or(withoutEmbedded(match[2]), "the top")
	}
	if match := pointerPattern.FindStringSubmatch(text); match != nil {
		return "found " + match[1] + " at " + cmp.Or(match[2], "the top")
	}
	for _, prefix := range []string{"error unmarshaling JSON: ", "error converting YAML to JSON: ", "while decoding JSON: ", "json: ", "jsontext: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return text
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
