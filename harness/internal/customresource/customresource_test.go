package customresource

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// definitionWith returns a CustomResourceDefinition whose schema of spec is the given YAML.
func definitionWith(t *testing.T, spec string) *unstructured.Unstructured {
	t.Helper()
	text := `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com, namespace: default}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, properties: {spec: ` + spec + `}, required: [spec, metadata],
        x-kubernetes-validations: [{rule: self.metadata.name != "root", message: the name is root}]}}
`
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

// TestRead checks which schemas are refused, and the texts of the errors.
func TestRead(t *testing.T) {
	const at = "spec.versions[0].schema.openAPIV3Schema.properties[spec]"
	for _, test := range []struct{ name, spec, want string }{
		{"valid", "{type: object, properties: {size: {type: integer, default: 3}}}", ""},
		{"default of another type", "{type: object, properties: {size: {type: integer, default: three}}}",
			at + `.properties[size].default: found a value of the type string, which the API server refuses: must be of type integer`},
		{"rule with an unknown field", "{type: object, properties: {size: {type: integer}}, x-kubernetes-validations: [{rule: self.sze > 1}]}",
			at + ".x-kubernetes-validations[0].rule: the API server refuses this: line 1, column 5: undefined field 'sze'"},
		{"rule without a rule", "{type: object, x-kubernetes-validations: [{message: none}]}", at + ".x-kubernetes-validations[0].rule: found nothing; expected a value: rule is not specified"},
		{"no type", "{properties: {}}", at + ".type: found nothing; expected a value: must not be empty for specified object fields"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := Read(t.Context(), definitionWith(t, test.spec))
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("error\n got %v\nwant %s", err, test.want)
			}
		})
	}
}

// TestCheck checks complete objects and merge patches.
func TestCheck(t *testing.T) {
	definition, err := Read(t.Context(), definitionWith(t, `
        {type: object, required: [size, mode], x-kubernetes-validations: [{rule: self.size != 13, message: 13 is unlucky}], properties: {
          size: {type: integer, maximum: 20}, mode: {type: string, default: fast}, color: {type: string}, level: {type: integer, enum: [1, 3]},
          name: {type: string, maxLength: 3, pattern: "^[a-z]*$"}, ports: {type: array, x-kubernetes-list-type: set, items: {type: integer}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		spec    string
		partial bool
		want    string
	}{
		{"{size: 20, level: 3}", false, ""},
		{"{level: 3}", false, "spec.size: found nothing; expected a value"},
		{"{level: 3}", true, ""},
		{"{size: null}", true, ""},
		{"{size: 21}", false, "spec.size: found 21, which the API server refuses: should be less than or equal to 20"},
		{"{size: 21}", true, "spec.size: found 21, which the API server refuses: should be less than or equal to 20"},
		{"{size: 3, color: null}", false, ""}, // the API server removes the field
		{"{size: 13}", false, "spec: the API server refuses this: 13 is unlucky"},
		{"{size: 1, level: 2}", false, `spec.level: found 2, which the API server refuses: supported values: "1", "3"`},
		{"{name: Ab}", true, "spec.name: found \"Ab\", which the API server refuses: should match '^[a-z]*$'"},
		{"{name: abcd}", true, "spec.name: the API server refuses this: may not be more than 3 bytes"},
		{"{ports: [1, 1]}", true, "spec.ports[1]: found 1, which the API server refuses"},
	} {
		var object map[string]any
		text, err := yaml.YAMLToJSON([]byte("metadata: {name: one}\nspec: " + test.spec))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &object); err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, e := range definition.Check(t.Context(), object, test.partial) {
			got += fmt.Sprintf("%s: %s\n", e.Field, e.Detail)
		}
		if (got == "") != (test.want == "") || !strings.HasPrefix(got, test.want) {
			t.Errorf("spec %s, partial %t\n got %s\nwant %s", test.spec, test.partial, got, test.want)
		}
	}
}

// TestCheckName checks that rules may refer to the metadata, and where an error about the whole object is.
func TestCheckName(t *testing.T) {
	definition, err := Read(t.Context(), definitionWith(t, "{type: object}"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"one": "", "root": ": the API server refuses this: the name is root"} {
		object := map[string]any{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": name}, "spec": map[string]any{}}
		got := ""
		for _, e := range definition.Check(t.Context(), object, false) {
			got += e.Field + ": " + e.Detail
		}
		if got != want {
			t.Errorf("name %s\n got %s\nwant %s", name, got, want)
		}
	}
}
