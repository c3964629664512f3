package operator

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// TestCompletes checks for which resources a mutating webhook may add missing fields.
func TestCompletes(t *testing.T) {
	for _, test := range []struct {
		kind, rule string
		want       bool
	}{
		{"MutatingWebhookConfiguration", "{apiGroups: [example.com], resources: [gadgets, widgets]}", true},
		{"MutatingWebhookConfiguration", "{apiGroups: ['*'], resources: ['*/*']}", true},
		{"MutatingWebhookConfiguration", "{apiGroups: [example.com], resources: [widgets/status]}", false},
		{"MutatingWebhookConfiguration", "{apiGroups: [example.org], resources: [widgets]}", false},
		{"ValidatingWebhookConfiguration", "{apiGroups: [example.com], resources: [widgets]}", false},
	} {
		o := &unstructured.Unstructured{}
		text := "apiVersion: admissionregistration.k8s.io/v1\nkind: " + test.kind + "\nmetadata: {name: a}\nwebhooks: [{name: a.b.c, rules: [" + test.rule + "]}]\n"
		if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
			t.Fatal(err)
		}
		if got := completes(mutatedBy([]manifest{{Unstructured: o}}), "example.com", "widgets"); got != test.want {
			t.Errorf("%s with %s: got %t, want %t", test.kind, test.rule, got, test.want)
		}
	}
}
