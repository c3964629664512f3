package schema

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-gauntlet/gauntlet/faults/catalog"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

func TestReferenceIsCurrent(t *testing.T) {
	golden(t, "docs/reference/scenario.md", ScenarioReference())
	golden(t, "docs/reference/triggers.md", TriggerReference())
}

// TestExamples checks each example of the reference documentation. Package scenario and the JSON
// Schema must accept it.
func TestExamples(t *testing.T) {
	const header = "name: example\ndescription: An example of the reference.\n"
	texts := map[string]string{"scenario": ScenarioExample}
	for name, workload := range OperationExamples {
		texts[name] = header + workload + "\n"
	}
	for name, faults := range TriggerExamples {
		texts["trigger "+name] = header + "workload: [{create: {kind: ReplicaSet, name: web, replicas: 3}}]" + faults + "\n"
	}
	for name, faults := range catalog.Examples {
		texts["fault "+name] = header + "workload: [{create: {kind: Deployment, name: web, replicas: 3}}]\nfaults:\n" + faults + "\n"
	}
	schema := compile(t)
	for name, text := range texts {
		if err := strictly(name, []byte(text)); err != nil {
			t.Errorf("the reader rejects the example %s: %v", name, err)
		}
		if err := validateData(t, schema, []byte(text)); err != nil {
			t.Errorf("the schema rejects the example %s: %v", name, err)
		}
	}
}

// TestReferenceIsComplete checks that each operation and each trigger has an example. Each
// field, type and allowed value must have a comment.
func TestReferenceIsComplete(t *testing.T) {
	comments := formatComments()
	var operations, triggers []string
	types := []reflect.Type{stepType, faultType, awaitType, triggerType, portType, reflect.TypeFor[scenario.Scenario](),
		reflect.TypeFor[scenario.Cluster](), reflect.TypeFor[scenario.Subject](), reflect.TypeFor[scenario.Settle]()}
	for _, op := range scenario.Operations() {
		operations, types = append(operations, op.Name), append(types, op.Type)
	}
	for _, field := range scenario.FieldsOf(triggerType) {
		triggers, types = append(triggers, field.Name), append(types, field.Type.Elem())
	}
	slices.Sort(operations)
	slices.Sort(triggers)
	if diff := cmp.Diff(operations, slices.Sorted(maps.Keys(OperationExamples))); diff != "" {
		t.Errorf("examples of operations (-operations +examples):\n%s", diff)
	}
	if diff := cmp.Diff(triggers, slices.Sorted(maps.Keys(TriggerExamples))); diff != "" {
		t.Errorf("examples of triggers (-triggers +examples):\n%s", diff)
	}
	for _, of := range types {
		keys := []string{of.Name()}
		for _, field := range scenario.FieldsOf(of) {
			keys = append(keys, field.Struct+"."+field.GoName)
		}
		for _, key := range keys {
			if !strings.HasSuffix(comments[key], ".") {
				t.Errorf("the comment of %s is %q; expected a sentence", key, comments[key])
			}
		}
	}
}
