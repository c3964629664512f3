package objects

import (
	"testing"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// TestFields checks under which paths Fields returns the fields of an object.
func TestFields(t *testing.T) {
	o := history.Object{
		Labels: map[string]string{"app.kubernetes.io/name": "web"}, Finalizers: []string{"example.com/own"},
		Owners: []history.Owner{{Kind: "Widget", Name: "w", UID: "u"}},
	}
	o.Body = []byte(`{"spec":{"replicas":3,"none":null,"args":["a","b"],"empty":[],"ports":[{"name":"http","port":80},{"name":"https","port":443}],"pairs":[{"name":"x"},{"name":"x"}]}}`)
	for path, want := range map[string]string{
		"spec/replicas":         "3",
		"spec/args":             `["a","b"]`,
		"spec/ports/https/port": "443",
		"spec/pairs":            `[{"name":"x"},{"name":"x"}]`,
		"spec/none":             "",
		"spec/empty":            "",
		"metadata/labels/app.kubernetes.io~1name": "web",
		"metadata/finalizers/example.com~1own":    "set",
		"metadata/ownerReferences/u":              "Widget w controller=false",
	} {
		if got := Fields(&o)[path]; got != want {
			t.Errorf("%s is %q, expected %q", path, got, want)
		}
	}
	o.Body = []byte(`"text"`)
	if got := Fields(&o); got != nil {
		t.Errorf("fields %v of a body that is no object", got)
	}
}
