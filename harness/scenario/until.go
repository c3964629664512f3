package scenario

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/util/jsonpath"

	"github.com/kube-gauntlet/gauntlet/harness/nearest"
)

// FieldCondition is a condition on the fields of an object, such as condition=Ready. Its syntax
// in YAML is that of the flag --for of kubectl wait, and "no " before a JSONPath means that there is no
// value. Either Type or JSONPath is set.
type FieldCondition struct {
	// Type is the type of a condition in status.conditions, and Status is the status that the
	// condition must have. The comparison with the object ignores upper and lower case.
	Type, Status string
	// JSONPath is an expression such as {.status.phase}. Value is the value that the object must
	// have at this path. If Value is "", any non-empty value matches.
	JSONPath, Value string
	// Absent means that the object must have no value at the JSONPath, or an empty one. Value is then "".
	Absent bool
}

const (
	untilCondition = "condition="
	untilJSONPath  = "jsonpath="
	untilAbsent    = "no " + untilJSONPath
)

// IsFieldCondition reports whether u is a condition on fields: it begins with "condition=",
// "jsonpath=" or "no jsonpath=".
func (u Until) IsFieldCondition() bool {
	return slices.ContainsFunc([]string{untilCondition, untilJSONPath, untilAbsent}, func(prefix string) bool { return strings.HasPrefix(string(u), prefix) })
}

// FieldCondition parses a condition on fields, such as "condition=Ready". It returns an error
// for any other condition, such as "scaled", and for a syntax error.
func (u Until) FieldCondition() (FieldCondition, error) {
	if text, ok := strings.CutPrefix(string(u), untilCondition); ok {
		name, status, given := strings.Cut(text, "=")
		if !given {
			status = "True"
		}
		if len(validation.IsQualifiedName(name)) > 0 || status == "" {
			return FieldCondition{}, fmt.Errorf("found %q; expected condition=TYPE or condition=TYPE=STATUS", string(u))
		}
		return FieldCondition{Type: name, Status: status}, nil
	}
	text, absent := strings.CutPrefix(string(u), untilAbsent)
	text, ok := strings.CutPrefix(text, untilJSONPath)
	path, value, given := cutJSONPath(text)
	switch {
	case !ok && !absent:
		return FieldCondition{}, fmt.Errorf("found %q; expected jsonpath={EXPRESSION}, jsonpath={EXPRESSION}=VALUE or no jsonpath={EXPRESSION}", string(u))
	case absent && (ok || given):
		return FieldCondition{}, fmt.Errorf("found %q; expected \"no jsonpath={EXPRESSION}\", without a value", string(u))
	}
	if rest := strings.LastIndex(path, "}"); rest >= 0 && rest < len(path)-1 && strings.HasPrefix(path, "{") {
		return FieldCondition{}, fmt.Errorf("found %q; expected nothing or =VALUE after the closing brace, without spaces", string(u))
	}
	expression, err := completeJSONPath(path)
	if err != nil {
		return FieldCondition{}, fmt.Errorf("found %q: %w", string(u), err)
	}
	condition := FieldCondition{JSONPath: expression, Absent: absent}
	if !strings.Contains(path, "[") && strings.Contains(path, "==") {
		return FieldCondition{}, fmt.Errorf("found %q; expected one equal sign before the value", string(u))
	}
	if given {
		if strings.HasPrefix(value, "=") {
			return FieldCondition{}, fmt.Errorf("found %q; expected one equal sign before the value", string(u))
		}
		if condition.Value = strings.TrimSpace(strings.Trim(value, `'"`)); condition.Value == "" {
			return FieldCondition{}, fmt.Errorf("found %q; expected a value after the equal sign", string(u))
		}
	}
	return condition, nil
}

// cutJSONPath splits text at the equal sign after the JSONPath expression. The value may contain further
// equal signs. An expression without braces ends at the first single equal sign, because == is an
// operator in JSONPath filters.
func cutJSONPath(text string) (expression, value string, given bool) {
	if strings.HasPrefix(text, "{") {
		if i := strings.Index(text, "}="); i >= 0 {
			return text[:i+1], text[i+2:], true
		}
		return text, "", false
	}
	const double = "\x00"
	expression, value, given = strings.Cut(strings.ReplaceAll(text, "==", double), "=")
	return strings.ReplaceAll(expression, double, "=="), strings.ReplaceAll(value, double, "=="), given
}

var jsonPathPattern = regexp.MustCompile(`^\{\.?([^{}]+)\}$|^\.?([^{}]+)$`)

// completeJSONPath adds the braces and the leading dot to a JSONPath expression that lacks
// them. It returns an error if the expression is invalid.
func completeJSONPath(expression string) (string, error) {
	match := jsonPathPattern.FindStringSubmatch(expression)
	if match == nil {
		return "", errors.New("the text is not a single JSONPath expression; expected an expression such as {.status.phase}")
	}
	complete := "{." + match[1] + match[2] + "}"
	parser, err := jsonpath.Parse("until", complete)
	if err != nil {
		return "", fmt.Errorf("the text is not valid JSONPath (%w); expected an expression such as {.status.phase}", err)
	}
	return complete, checkNodes(parser.Root)
}

// checkNodes returns an error if the nodes of a JSONPath expression can select no field. The parser
// accepts a word without a dot, which only templates may have, and two dots at the end.
func checkNodes(list *jsonpath.ListNode) error {
	for i, n := range list.Nodes {
		switch n := n.(type) {
		case *jsonpath.ListNode:
			if err := checkNodes(n); err != nil {
				return err
			}
		case *jsonpath.IdentifierNode:
			return fmt.Errorf("the word %s follows a space; expected names of fields with a dot between them", n.Name)
		case *jsonpath.RecursiveNode:
			if i == len(list.Nodes)-1 {
				return errors.New("two dots at the end select no field; expected the name of a field after them")
			}
		}
	}
	return nil
}

// until reports an error if the kind of the awaited object does not support the condition. It
// also reports an error if a condition on fields has a syntax error.
func (v *validator) until(path string, await *Await) {
	if await.Until.IsFieldCondition() {
		_, err := await.Until.FieldCondition()
		v.check(err == nil, path, "%v", err)
		return
	}
	known := append(slices.Clip(await.Kind.row().untils), Quiet, untilCondition+"…", untilJSONPath+"…", untilAbsent+"…")
	ofOther := slices.ContainsFunc(kinds, func(row kindRow) bool { return slices.Contains(row.untils, await.Until) })
	if ofOther && !slices.Contains(known, await.Until) {
		v.check(false, path, "found %q, which is no condition of %s; expected %s", string(await.Until), nearest.WithArticle(await.Kind), nearest.List(known, "or"))
		return
	}
	meant := Until(strings.NewReplacer("json-path", "jsonpath", ": ", "=", "==", "=").Replace(string(await.Until)))
	if word, ok := untilAdvice[strings.ToLower(string(await.Until))]; ok && slices.Contains(known, word) {
		meant = word
	}
	if meant != await.Until {
		v.check(false, path, "found %.60q; expected %s; did you mean %s?", string(await.Until), nearest.List(known, "or"), meant)
	}
	oneOf(v, path, await.Until, known...)
}

// untilAdvice has the condition that users mean by a word that is no condition, such as gone for deleted.
var untilAdvice = map[string]Until{
	"deleted": Gone, "delete": Gone, "absent": Gone, "removed": Gone, "terminated": Gone, "running": Ready, "healthy": Ready, "done": Complete, "finished": Complete,
	"rolledout": Complete, "updated": Complete, "settled": Quiet, "idle": Quiet, "stable": Quiet, "endpoints": Served, "ready": Served,
}
