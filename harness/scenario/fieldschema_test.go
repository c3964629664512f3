package scenario

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// refusals refuses a size above 20, and a complete object without a size.
func refusals(object map[string]any, partial bool) field.ErrorList {
	spec, _ := object["spec"].(map[string]any)
	size, ok := spec["size"].(int64)
	if !ok && !partial {
		return field.ErrorList{field.Required(field.NewPath("spec", "size"), "found nothing; expected a value")}
	}
	if size > 20 {
		return field.ErrorList{field.Invalid(field.NewPath("spec", "size"), size, "found 21; expected at most 20")}
	}
	return nil
}

// TestSchema checks that the fields of a custom resource must be in the schema of its kind.
func TestSchema(t *testing.T) {
	text := func(values ...any) map[string]any { return map[string]any{"type": "string", "enum": values} }
	schema := map[string]any{"type": "object", "properties": map[string]any{
		"spec": map[string]any{"type": "object", "properties": map[string]any{
			"storage": map[string]any{"type": "string"}, "size": map[string]any{"type": "integer"}, "mode": text("Fast", "Slow"),
			"free":  map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
			"items": map[string]any{"type": "array", "items": map[string]any{"type": "object", "properties": map[string]any{"port": map[string]any{"x-kubernetes-int-or-string": true}}}},
		}},
		"status": map[string]any{"type": "object", "properties": map[string]any{"phase": map[string]any{"type": "string"}, "labels": map[string]any{"type": "object", "additionalProperties": text()}}},
	}}
	for _, test := range []struct{ name, steps, want string }{
		{"all fields", "create MANIFEST {metadata: {labels: {a: b}}, spec: {storage: 1Gi, size: 3, mode: Fast, free: {a: [1]}, items: [{port: http}, {port: 80}]}}", ""},
		{"unknown field", "create MANIFEST {spec: {storge: 1Gi}}", "manifest.spec.storge: found the field storge, which the CustomResourceDefinition of Notebook does not have; did you mean storage?"},
		{"unknown field of an item", "create MANIFEST {spec: {items: [{prt: 80}]}}", "manifest.spec.items[0].prt: found the field prt"},
		{"number in place of a text", "create MANIFEST {spec: {storage: 1}}", "manifest.spec.storage: found 1; expected a text in quotes, as in the CustomResourceDefinition of Notebook"},
		{"text in place of a number", "create MANIFEST {spec: {size: '1'}}", `manifest.spec.size: found "1"; expected a whole number`},
		{"unknown value", "create MANIFEST {spec: {mode: fast}}", `manifest.spec.mode: found "fast"; expected Fast or Slow`},
		{"no size", "create MANIFEST {spec: {storage: 1Gi}}", "manifest.spec.size: found nothing; expected a value, as in the CustomResourceDefinition of Notebook"},
		{"large size", "create MANIFEST {spec: {size: 21}}", "manifest.spec.size: found 21; expected at most 20"},
		{"patch to a large size", "patch {merge: {spec: {size: 21}}}", "merge.spec.size: found 21"},
		{"patch of another field", "patch {merge: {spec: {storage: 1Gi}}}", ""},
		{"patch that removes a field", "patch {merge: {spec: {storage: null}}}", ""},
		{"patch of an unknown field", "patch {merge: {spec: {storge: null}}}", "merge.spec.storge: found the field storge"},
		{"patch of an unknown field of the status", "patch {status: {phse: a}}", "status.phse: found the field phse"},
		{"scale", "scale {replicas: 3}", "scale.kind: found Notebook, which has no field spec.replicas; expected a kind with this field"},
		{"await of a field", "await jsonpath={.status.phase}=Ready", ""},
		{"await of a label", "await jsonpath={.status.labels.x}=1", ""},
		{"await of metadata", "await jsonpath={.metadata.generation}=1", ""},
		{"await of an item", "await jsonpath={.spec.items[0].port}=80", ""},
		{"await of an unknown field", "await jsonpath={.status.phse}=Ready", `await.until: found "jsonpath={.status.phse}=Ready" for a Notebook: unknown field phse; did you mean phase?`},
		{"await of a field of a list", "await jsonpath={.spec.items.port}=80", "the field port is that of a list; expected an index such as [0] before it"},
		{"await of a condition without conditions", "await condition=Ready", `await.until: found "condition=Ready", but the kind Notebook has no conditions; expected gone`},
		{"await of unknown metadata", "no jsonpath={.metadata.deletion}", "unknown field deletion"},
	} {
		t.Run(test.name, func(t *testing.T) {
			operation, rest, _ := strings.Cut(test.steps, " ")
			step := "  - " + operation + ": {kind: Notebook, name: one, " + strings.TrimPrefix(rest, "{")
			switch operation {
			case "create":
				step = ""
			case "await", "no":
				step = "  - await: {kind: Notebook, name: one, until: '" + strings.TrimPrefix(test.steps, "await ") + "'}"
			}
			manifest, isManifest := strings.CutPrefix(rest, "MANIFEST ")
			if !isManifest {
				manifest = "{spec: {size: 1}}"
			}
			input := "name: x\noperator: {kinds: [{apiVersion: example.com/v1, kind: Notebook}]}\nworkload:\n  - create: {kind: Notebook, apiVersion: example.com/v1, name: one, manifest: " + manifest + "}\n" + step + "\n"
			s, err := Parse("x.yaml", []byte(input))
			if err != nil {
				t.Fatal(err)
			}
			s.Operator.Kinds[0].SetSchema(schema, refusals)
			if err = s.Validate(); err == nil {
				err = s.CheckReachable()
			}
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("error\n got %v\nwant %s\n%s", err, test.want, input)
			}
		})
	}
}

// TestSchemaOfOtherVersion checks that the schema of another version says nothing about a manifest.
func TestSchemaOfOtherVersion(t *testing.T) {
	s, err := Parse("x.yaml", []byte("name: x\nworkload:\n  - create: {kind: Notebook, apiVersion: example.com/v1alpha1, name: one, manifest: {spec: {count: 1}}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	s.Operator = &Operator{Kinds: []ExternalKind{{APIVersion: "example.com/v1", Kind: "Notebook"}}}
	s.Operator.Kinds[0].SetSchema(map[string]any{"type": "object", "properties": map[string]any{"spec": map[string]any{"type": "object"}}}, refusals)
	const want = "create.apiVersion: found example.com/v1alpha1 for kind Notebook; expected example.com/v1"
	if got := fmt.Sprint(s.Validate()); !strings.Contains(got, want) || strings.Contains(got, "count") {
		t.Errorf("error\n got %s\nwant only %s", got, want)
	}
}

// TestReachableFields checks awaits of fields of built-in kinds, and of Deployments that were created with paused: true.
func TestReachableFields(t *testing.T) {
	const create = "name: x\nworkload:\n  - create: {kind: Deployment, name: web, replicas: 3, paused: true}\n"
	for _, test := range []struct{ name, steps, want string }{
		{"a field", "  - await: {kind: Deployment, name: web, until: 'jsonpath={.status.observedGeneration}=1'}", ""},
		{"a condition", "  - await: {kind: Deployment, name: web, until: 'jsonpath={.status.conditions[?(@.type==\"Progressing\")].status}=True'}", ""},
		{"an annotation", "  - await: {kind: Deployment, name: web, until: 'jsonpath={.metadata.annotations.a}=1'}", ""},
		{"an escaped annotation", `  - await: {kind: Deployment, name: web, until: 'jsonpath={.metadata.annotations.example\.com/a}=1'}`, ""},
		{"a resource", "  - await: {kind: Deployment, name: web, until: 'jsonpath={.spec.template.spec.containers[0].resources.limits.cpu}=1'}", ""},
		{"an unknown field", "  - await: {kind: Deployment, name: web, until: 'jsonpath={.status.readyReplica}=1'}", "x.yaml:4:49: workload[1].await.until: found \"jsonpath={.status.readyReplica}=1\" for a Deployment: unknown field readyReplica; did you mean readyReplicas?"},
		{"the items of a list", "  - await: {kind: Deployment, name: web, until: 'jsonpath={.items[*].status.replicas}=1'}", "unknown field items"},
		{"paused", "  - await: {kind: Deployment, name: web, until: complete}", "workload[1].await.until: found complete, but Deployment web was created with paused: true, so it has no pods; add a resume step before this await"},
		{"scaled to none", "  - scale: {kind: Deployment, name: web, replicas: 0}\n    await: {until: scaled}", ""},
		{"resumed", "  - resume: {kind: Deployment, name: web}\n    await: {until: complete}", ""},
	} {
		s, err := Parse("x.yaml", []byte(create+test.steps+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		err = s.CheckReachable()
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error\n got %v\nwant %s", test.name, err, test.want)
		}
	}
}
