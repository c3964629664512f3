package operator

import (
	"strings"
	"testing"
)

// TestPositions checks the line and the column of errors about manifests.
func TestPositions(t *testing.T) {
	config := "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n"
	for _, test := range []struct{ name, text, want string }{
		{"first document", config + "data:\n  x: 5\n", "m.yaml:6:3: ConfigMap a: data.x: found 5"},
		{"second document", "# text\n" + config + "---\n" + config + "data:\n  x: 5\n", "m.yaml:12:3: ConfigMap a: data.x: found 5"},
		{"same document twice", strings.Repeat(config+"---\n", 2) + config + "data:\n  x: 5\n", "m.yaml:16:3: ConfigMap a: data.x: found 5"},
		{"line breaks of Windows", strings.ReplaceAll(config+"---\n"+config+"data:\n  x: 5\n", "\n", "\r\n"), "m.yaml:11:3: ConfigMap a: data.x: found 5"},
		{"key with a dot", config + "data:\n  a: x\n  a.b: 5\n", `m.yaml:7:3: ConfigMap a: data["a.b"]: found 5`},
		{"missing field", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: A\n", `m.yaml:4:3: ConfigMap A: metadata.name: found "A"`},
		{"unknown field", config + "dat: {}\n", "m.yaml:5:1: ConfigMap a: unknown field dat"},
		{"item of a list", "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: A}\n", `m.yaml:7:14: items[1]: ConfigMap A: metadata.name: found "A"`},
		{"JSON", "{\n \"apiVersion\": \"v1\",\n \"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"a\"},\n  \"data\": {\"x\": 5}}\n", "m.yaml:4:12: ConfigMap a: data.x: found 5"},
		{"second document of JSON", `{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}} {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "A"}}`, "m.yaml:1:125: Namespace A"},
		{"text that YAML reads as a boolean", config + "data: {x: yes}\n", "m.yaml:5:8: ConfigMap a: data.x: found yes, which YAML 1.1 reads as true; expected a text in quotes"},
		{"boolean", config + "data: {x: true}\n", "m.yaml:5:8: ConfigMap a: data.x: found true; expected a text in quotes"},
		{"alias", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, annotations: &a {x: z}}\ndata: *a\nlabels: {}\n", "m.yaml:5:1: ConfigMap a: unknown field labels"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := readManifests("", write(t, t.TempDir(), "m.yaml", test.text))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error\n got %v\nwant %s", err, test.want)
			}
		})
	}
}

// TestKustomizationPositions checks that an error about an object of a kustomization has the position in its resource.
func TestKustomizationPositions(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "base/kustomization.yaml", "resources: [m.yaml]\n")
	write(t, dir, "base/m.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  x: 5\n")
	write(t, dir, "kustomization.yaml", "resources: [base]\nnamePrefix: b-\n")
	_, err := readManifests("", dir)
	want := "the kustomization in " + dir + ", from " + dir + "/base/m.yaml:9:3: ConfigMap b-a: data.x: found 5; expected a text in quotes"
	if err == nil || err.Error() != want {
		t.Errorf("error\n got %v\nwant %s", err, want)
	}
}

// TestDocumentAt checks the position of fields with unusual names. A name may look like an item of a list.
func TestDocumentAt(t *testing.T) {
	d := &document{path: "a.yaml", text: []byte("spec:\n  ports: [{port: 80}]\n  \"ports[-1] \": 1\n"), line: 2}
	for path, want := range map[string]string{
		"spec.ports[0].port": "a.yaml:4:12", "spec.ports[1].port": "a.yaml:4:3", "spec.ports[-1] ": "a.yaml:5:3", "spec.other": "a.yaml:3:1",
	} {
		if got := d.at(path); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}
