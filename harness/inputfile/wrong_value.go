package inputfile

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// WrongValue returns the path of the first value in a JSON text with a wrong type. The right type is that of
// the field in the Go value target. The path has indexes and keys, such as spec.containers[0].args[1]. The
// reason is what was found and expected, such as "found 5; expected a text in quotes". The path is empty if no
// value differs.
func WrongValue(text []byte, target any) (path, reason string) {
	err := json.Unmarshal(text, reflect.New(reflect.TypeOf(target).Elem()).Interface(), jsonv1.DefaultOptionsV1(), jsonv1.ReportErrorsWithLegacySemantics(false))
	semantic, ok := errors.AsType[*json.SemanticError](err)
	if !ok || semantic.JSONPointer == "" {
		return "", ""
	}
	parts := strings.Split(string(semantic.JSONPointer), "/")[1:]
	reason, expected, ok := strings.Cut(JSONReason(err), "; expected ")
	if !ok {
		return pathOf(parts), strings.Replace(reason, " at "+string(semantic.JSONPointer), "", 1)
	}
	value := valueAt(text, parts)
	if _, isText := value.(string); expected == "a text" && !isText && !isObject(value) {
		expected += " in quotes"
	}
	return pathOf(parts), fmt.Sprintf("found %s; expected %s", describe(value), expected)
}

// valueAt returns the value that the parts of a JSON pointer name in a JSON text, or nil.
func valueAt(text []byte, parts []string) any {
	var value any
	if json.Unmarshal(text, &value, jsontext.AllowDuplicateNames(true)) != nil {
		return nil
	}
	for _, part := range parts {
		switch in := value.(type) {
		case map[string]any:
			value = in[unescape.Replace(part)]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i >= len(in) {
				return nil
			}
			value = in[i]
		}
	}
	return value
}

// isObject reports whether a JSON value is an object or a list.
func isObject(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

// describe returns a JSON value for an error. It returns only the type of an object and of a list.
func describe(value any) string {
	switch value := value.(type) {
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	case string:
		return fmt.Sprintf("%.60q", value)
	}
	return fmt.Sprint(value)
}

// unescape replaces the escapes of a JSON pointer.
var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// plainKey matches a part of a path that needs no quotation marks.
var plainKey = regexp.MustCompile(`^[A-Za-z_][\w-]*$`)

// pathOf returns the path that the parts of a JSON pointer name. A part is the key of a mapping or the
// index of a list.
func pathOf(parts []string) string {
	var path strings.Builder
	for _, part := range parts {
		part = unescape.Replace(part)
		switch {
		case isIndex.MatchString(part) && path.Len() > 0:
			path.WriteString("[" + part + "]")
		case path.Len() > 0 && !plainKey.MatchString(part):
			path.WriteString(`["` + part + `"]`)
		case path.Len() > 0:
			path.WriteString("." + part)
		default:
			path.WriteString(part)
		}
	}
	return path.String()
}

// isIndex matches a part of a path that is the index of a list.
var isIndex = regexp.MustCompile(`^\d+$`)
