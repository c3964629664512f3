package scenario

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/client-go/util/jsonpath"
)

// FieldCondition is a condition on the fields of an object. Its syntax is the one of the
// flag --for of kubectl wait.
type FieldCondition struct {
	// Type and Status are a condition in status.conditions and its status. Comparisons
	// ignore case.
	Type, Status string
	// JSONPath is an expression such as {.status.phase}, and Value is the value that it
	// must have. "" means any value except an empty one.
	JSONPath, Value string
}

const (
	untilCondition = "condition="
	untilJSONPath  = "jsonpath="
)

// IsFieldCondition reports whether the condition begins with "condition=" or "jsonpath=".
func (u Until) IsFieldCondition() bool {
	return strings.HasPrefix(string(u), untilCondition) || strings.HasPrefix(string(u), untilJSONPath)
}

// FieldCondition returns the parts of a condition that begins with "condition=" or
// "jsonpath=".
func (u Until) FieldCondition() (FieldCondition, error) {
	if text, ok := strings.CutPrefix(string(u), untilCondition); ok {
		name, status, given := strings.Cut(text, "=")
		if !given {
			status = "True"
		}
		if name == "" || status == "" {
			return FieldCondition{}, fmt.Errorf("found %q; expected condition=TYPE or condition=TYPE=STATUS", string(u))
		}
		return FieldCondition{Type: name, Status: status}, nil
	}
	text, ok := strings.CutPrefix(string(u), untilJSONPath)
	parts := splitJSONPath(text)
	if !ok || len(parts) > 2 {
		return FieldCondition{}, fmt.Errorf("found %q; expected jsonpath={EXPRESSION} or jsonpath={EXPRESSION}=VALUE", string(u))
	}
	expression, err := completeJSONPath(parts[0])
	if err != nil {
		return FieldCondition{}, fmt.Errorf("found %q: %w", string(u), err)
	}
	condition := FieldCondition{JSONPath: expression}
	if len(parts) == 2 {
		if condition.Value = strings.TrimSpace(strings.Trim(parts[1], `'"`)); condition.Value == "" {
			return FieldCondition{}, fmt.Errorf("found %q; expected a value after the equal sign", string(u))
		}
	}
	return condition, nil
}

// splitJSONPath splits text at single equal signs. Double ones, as in filters, remain.
func splitJSONPath(text string) []string {
	const double = "\x00"
	parts := strings.Split(strings.ReplaceAll(text, "==", double), "=")
	for i := range parts {
		parts[i] = strings.ReplaceAll(parts[i], double, "==")
	}
	return parts
}

var jsonPathPattern = regexp.MustCompile(`^\{\.?([^{}]+)\}$|^\.?([^{}]+)$`)

// completeJSONPath returns the expression with braces and a leading dot, which the file may
// omit.
func completeJSONPath(expression string) (string, error) {
	match := jsonPathPattern.FindStringSubmatch(expression)
	if match == nil {
		return "", errors.New("expected one expression such as {.status.phase}")
	}
	complete := "{." + match[1] + match[2] + "}"
	_, err := jsonpath.Parse("until", complete)
	return complete, err
}

// until checks the condition of an await.
func (v *validator) until(path string, await *Await) {
	if await.Until.IsFieldCondition() {
		_, err := await.Until.FieldCondition()
		v.check(err == nil, path, "%v", err)
		return
	}
	known := append(slices.Clip(await.Kind.row().untils), untilCondition+"…", untilJSONPath+"…")
	oneOf(v, path, await.Until, known...)
}
