package workload

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/jsonpath"

	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// meets reports whether an object meets a condition on its fields, by the rules of kubectl wait.
// The returned text describes the found value for error messages. A nil object means that the
// object does not exist.
func meets(o runtime.Object, condition scenario.FieldCondition) (bool, string, error) {
	if o == nil {
		return false, noSuchObject, nil
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return false, "", err
	}
	if condition.JSONPath != "" {
		met, state, err := meetsJSONPath(fields, condition.JSONPath, condition.Value)
		met = met != condition.Absent && err == nil
		if old := oldStatus(fields); met && old != "" && strings.HasPrefix(condition.JSONPath, "{.status.") {
			return false, state + ", " + old, nil
		}
		return met, state, err
	}
	met, state := hasCondition(fields, condition.Type, condition.Status)
	return met, state, nil
}

// hasCondition reports whether status.conditions has a condition with the given type and status. A
// condition of an earlier generation of the object does not count. The returned text describes
// the found condition.
func hasCondition(object map[string]any, conditionType, status string) (bool, string) {
	conditions, _, _ := unstructured.NestedSlice(object, "status", "conditions")
	for _, each := range conditions {
		condition, _ := each.(map[string]any)
		name, _, _ := unstructured.NestedString(condition, "type")
		if !strings.EqualFold(name, conditionType) {
			continue
		}
		found, _, _ := unstructured.NestedString(condition, "status")
		state := fmt.Sprintf("condition %s=%s", name, found)
		old := oldStatus(object)
		if observed, has, _ := unstructured.NestedInt64(condition, "observedGeneration"); has {
			old = unobserved(object, observed)
		}
		if old != "" {
			return false, state + ", " + old
		}
		return strings.EqualFold(found, status), state
	}
	return false, "no condition " + conditionType
}

// oldStatus returns a text if the status of an object is that of an earlier generation. It returns "" if
// it is not, or if the status has no observedGeneration.
func oldStatus(object map[string]any) string {
	observed, has, _ := unstructured.NestedInt64(object, "status", "observedGeneration")
	_, terminating, _ := unstructured.NestedString(object, "metadata", "deletionTimestamp")
	if !has || terminating { // a deletion increases the generation, but many controllers then no longer report it
		return ""
	}
	return unobserved(object, observed)
}

// unobserved returns a text if the generation of an object is later than the observed one. Otherwise it
// returns "".
func unobserved(object map[string]any, observed int64) string {
	generation, _, _ := unstructured.NestedInt64(object, "metadata", "generation")
	if observed >= generation {
		return ""
	}
	return fmt.Sprintf("observedGeneration %d of %d", observed, generation)
}

// meetsJSONPath reports whether an object has the given value at a JSONPath. If the expected
// value is "", the object may have any non-empty value there. The returned text describes the
// found value.
func meetsJSONPath(object map[string]any, path, value string) (bool, string, error) {
	expression := jsonpath.New("until").AllowMissingKeys(true)
	if err := expression.Parse(path); err != nil {
		return false, "", err
	}
	lists, err := expression.FindResults(object)
	if err != nil && strings.HasSuffix(err.Error(), "is not array or slice") {
		return false, "", fmt.Errorf("JSONPath %s has an index, but found a value that is no list; expected the path of a list before [", path)
	}
	if err != nil {
		return false, "", err
	}
	var results []reflect.Value
	for _, list := range lists {
		results = append(results, list...)
	}
	if len(results) > 1 {
		return false, "", fmt.Errorf("found %d values at JSONPath %s; expected one", len(results), path)
	}
	missing := "nothing at " + path
	if len(results) == 0 {
		return false, missing, nil
	}
	found := results[0].Interface()
	if value == "" {
		if isEmpty(found) {
			return false, missing, nil
		}
		return true, fmt.Sprintf("a value at %s", path), nil
	}
	switch found.(type) {
	case nil:
		return false, missing, nil
	case map[string]any, []any:
		return false, "", fmt.Errorf("found an object or a list at JSONPath %s; expected a text, number or boolean to compare with %q", path, value)
	}
	text := strings.TrimSpace(fmt.Sprint(found))
	return text == value, fmt.Sprintf("%q at %s", text, path), nil
}

// isEmpty reports whether a JSON value is null, "", an empty object or an empty list.
func isEmpty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}
