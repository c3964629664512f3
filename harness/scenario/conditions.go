package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/nearest"
)

// conditionStatuses are the values of the status of a condition.
var conditionStatuses = []string{"True", "False", "Unknown"}

// conditionTypes has the conditions that Kubernetes sets in the status of a kind. Other clients may set
// more by a patch.
var conditionTypes = map[Kind][]string{
	Deployment:            {"Available", "Progressing", "ReplicaFailure"},
	ReplicaSet:            {"ReplicaFailure"},
	ReplicationController: {"ReplicaFailure"},
	Pod: {
		"ContainersReady", "DisruptionTarget", "Initialized", "PodReadyToStartContainers", "PodScheduled", "Ready", "PodResizePending",
		"PodResizeInProgress", "AllContainersRestarting",
	},
	Service:       {},
	"StatefulSet": {},
	"DaemonSet":   {},
	"Job":         {"Complete", "Failed", "FailureTarget", "SuccessCriteriaMet", "Suspended"},
}

// permanentFields has the JSONPaths of fields that every object has.
var permanentFields = []string{"{.metadata}", "{.metadata.name}", "{.metadata.uid}", "{.metadata.resourceVersion}", "{.metadata.creationTimestamp}"}

// conditions reports an error for each await of a condition or a value that the object never has. A custom resource may
// have conditions of any form.
func (v *validator) conditions() {
	for i := range v.scenario.Workload {
		await := v.scenario.Workload[i].Await
		if await == nil || !await.Until.IsFieldCondition() {
			continue
		}
		kind := await.Kind
		if target, ok := v.scenario.Workload[i].Target(); kind == "" && ok {
			kind = target.Kind
		}
		condition, err := await.Until.FieldCondition()
		if err != nil {
			continue // validator.until has reported it
		}
		at := stepPath(i) + ".await.until"
		v.check(!condition.Absent || !slices.Contains(permanentFields, condition.JSONPath), at, "found %q, but every object has this field; expected a field that the subject removes, or until: gone", string(await.Until))
		schema, err := checkJSONPath(cmp.Or(condition.JSONPath, "{.status.conditions}"), v.objectSchema(kind))
		if condition.Type == "" {
			if err == nil && condition.Value != "" {
				err = schema.checkValue(condition.Value)
			}
			v.check(err == nil, at, "found %q for %s: %w", string(await.Until), nearest.WithArticle(kind), err)
			continue
		}
		v.check(err == nil, at, "found %q, but the kind %s has no conditions; expected %s", string(await.Until), kind, nearest.List(kind.row().untils, "or"))
		if _, builtIn := kube.Named(string(kind)); builtIn {
			v.conditionType(at, kind, condition)
		}
	}
}

// conditionType reports an error if an object of a kind of Kubernetes never has a condition.
func (v *validator) conditionType(at string, kind Kind, condition FieldCondition) {
	v.check(containsFold(conditionStatuses, condition.Status), at, "found the status %.60q; expected %s", condition.Status, nearest.List(conditionStatuses, "or"))
	types, listed := conditionTypes[kind]
	if !listed || containsFold(types, condition.Type) {
		return
	}
	meant := nearest.Suggestion(condition.Type, types)
	if word := Until(strings.ToLower(condition.Type)); meant == "" && slices.Contains(kind.row().untils, word) {
		meant = fmt.Sprintf("; did you mean until: %s?", word)
	}
	if meant == "" && (v.setsConditions() || strings.Contains(condition.Type, "/")) {
		return
	}
	expected := nearest.List(types, "or")
	if len(types) == 0 {
		expected = nearest.List(append(slices.Clip(kind.row().untils), "jsonpath={EXPRESSION}=VALUE"), "or")
	}
	if meant == "" {
		expected += ", or " + forOtherControllers
	}
	v.check(false, at, "found the condition %.60q, which %s never has; expected %s%s", condition.Type, nearest.WithArticle(kind), expected, meant)
}

// setsConditions reports whether another program than the controllers of Kubernetes may set conditions.
func (v *validator) setsConditions() bool {
	s := v.scenario
	patched := slices.ContainsFunc(s.StepsOfAllUsers(), func(step Step) bool {
		patch, ok := step.Operation.(*Patch)
		return ok && len(patch.Status) > 0
	})
	return patched || !s.onlyKnownWriters() || len(s.valuesInManifests("readinessGates")) > 0
}

// containsFold reports whether a list has a text, in upper or lower case.
func containsFold(in []string, text string) bool {
	return slices.ContainsFunc(in, func(each string) bool { return strings.EqualFold(each, text) })
}
