package inputfile

import (
	"errors"
	"reflect"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// WrongValue returns the path of the first value in a JSON text with a wrong type. The right type is that of
// the field in the Go value target. The path has indexes and keys, such as spec.containers[0].args[1]. The
// reason is what was found and expected, such as "found number; expected a text". The path is empty if no
// value differs.
func WrongValue(text []byte, target any) (path, reason string) {
	err := json.Unmarshal(text, reflect.New(reflect.TypeOf(target).Elem()).Interface(), jsonv1.DefaultOptionsV1(), jsonv1.ReportErrorsWithLegacySemantics(false))
	semantic, ok := errors.AsType[*json.SemanticError](err)
	if !ok || semantic.JSONPointer == "" {
		return "", ""
	}
	reason = strings.Replace(JSONReason(err), " at "+string(semantic.JSONPointer), "", 1)
	if found, isText := strings.CutSuffix(reason, "; expected a text"); isText && (found == "found number" || found == "found boolean") {
		reason += " in quotes"
	}
	return pathOf(strings.Split(string(semantic.JSONPointer), "/")[1:]), reason
}

// plainKey matches a part of a path that needs no quotation marks.
var plainKey = regexp.MustCompile(`^[A-Za-z_][\w-]*$`)

// pathOf returns the path that the parts of a JSON pointer name. A part is the key of a mapping or the
// index of a list.
func pathOf(parts []string) string {
	var path strings.Builder
	for _, part := range parts {
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
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
