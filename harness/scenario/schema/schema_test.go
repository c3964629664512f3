package schema

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/kube-gauntlet/gauntlet/faults/catalog"
	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

var update = flag.Bool("update", false, "write the generated files")

const root = "../../.."

// golden compares generated text with the file in the repository. With the flag -update, it
// first writes the text to the file.
func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	path = filepath.Join(root, path)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is stale; run go test ./harness/scenario/schema -update (-file +generated):\n%s", path, diff)
	}
}

func TestSchemaIsCurrent(t *testing.T) {
	data, err := JSONSchema()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "docs/schema/scenario.json", data)
}

// notInSchema has the invalid files under testdata/bad that the JSON Schema accepts. The value
// is the reason why the schema cannot reject the file.
var notInSchema = map[string]string{
	"await-before-create.yaml":          "compares the steps: the object must exist",
	"await-condition-of-kind.yaml":      "the kind of an await without kind is that of the operation beside it",
	"await-gone-not-deleted.yaml":       "compares the steps: the object must be deleted",
	"burst-below-qps.yaml":              "compares two numbers",
	"create-twice.yaml":                 "compares the steps: the object exists already",
	"deadline-below-min-ready.yaml":     "compares two numbers",
	"delete-twice.yaml":                 "compares the steps: the object is deleted already",
	"duration-too-long.yaml":            "a duration is text, and JSON Schema has no bounds for text",
	"fault-code-without-error.yaml":     "the catalog does not document rules between parameters as data",
	"fault-nth-and-every.yaml":          "the catalog does not document rules between parameters as data",
	"fault-delay-too-long.yaml":         "a duration is text, and JSON Schema has no bounds for text",
	"fault-trigger-on-itself.yaml":      "compares an index with the position of the fault",
	"generic-misspelled-kind.yaml":      "the schema does not list all kinds of Kubernetes",
	"generic-not-created.yaml":          "compares the steps: one must create an object of the kind",
	"generic-two-api-versions.yaml":     "compares the steps: a kind has one apiVersion",
	"label-set-and-removed.yaml":        "compares a list with the keys of a mapping",
	"port-name-twice.yaml":              "compares one field of several items",
	"selector-without-labels.yaml":      "compares two mappings",
	"state-of-unobserved-resource.yaml": "compares a trigger with the kinds of the workload",
	"state-most-below-least.yaml":       "compares two numbers",
	"step-trigger-beyond-end.yaml":      "compares an index with the length of the workload",
	"unknown-controller.yaml":           "the registry of controllers may grow without a new schema",
	"too-many-triggers.yaml":            "a recursive definition has no depth",
}

// TestSchemaAndReaderAgree checks that package scenario and the JSON Schema accept the same
// files. They must accept all files in testdata/good, and reject the files in testdata/bad. The
// schema may accept the files in notInSchema.
func TestSchemaAndReaderAgree(t *testing.T) {
	schema := compile(t)
	good := slices.Concat(glob(t, "testdata/good/*.yaml"), glob(t, root+"/harness/scenario/library/*.yaml"),
		glob(t, root+"/suites/regression/*.yaml"))
	for _, path := range good {
		if err := read(t, path); err != nil {
			t.Errorf("%s: the reader rejects a good file: %v", path, err)
		}
		if err := validate(t, schema, path); err != nil {
			t.Errorf("%s: the schema rejects a good file: %v", path, err)
		}
	}
	bad := glob(t, "testdata/bad/*.yaml")
	if own := len(glob(t, "testdata/good/*.yaml")); own < 15 || len(bad) < 40 {
		t.Errorf("found %d good and %d bad files; expected at least 15 and 40", own, len(bad))
	}
	for _, path := range bad {
		name := filepath.Base(path)
		if err := read(t, path); err == nil {
			t.Errorf("%s: the reader accepts a bad file", path)
		}
		err, reason := validate(t, schema, path), notInSchema[name]
		if err == nil && reason == "" {
			t.Errorf("%s: the schema accepts a bad file", path)
		}
		if err != nil && reason != "" {
			t.Errorf("%s: the schema rejects it, although notInSchema has it: %v", path, err)
		}
	}
	for name := range notInSchema {
		if !slices.Contains(bad, filepath.Join("testdata/bad", name)) {
			t.Errorf("testdata/bad/%s is missing", name)
		}
	}
}

// TestFilesReferToSchema checks that the first line of each scenario file names the JSON Schema.
// Editors find the schema by this line.
func TestFilesReferToSchema(t *testing.T) {
	for _, directory := range []string{"harness/scenario/library", "suites/regression"} {
		up, err := filepath.Rel(directory, "docs/schema/scenario.json")
		if err != nil {
			t.Fatal(err)
		}
		want := "# yaml-language-server: $schema=" + up
		for _, path := range glob(t, filepath.Join(root, directory, "*.yaml")) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if first, _, _ := strings.Cut(string(data), "\n"); first != want {
				t.Errorf("%s begins with %q; expected %q", path, first, want)
			}
		}
	}
}

// TestSchemaBounds checks that package scenario and the JSON Schema have the same bounds. It
// covers each number in the sections cluster and subject.
func TestSchemaBounds(t *testing.T) {
	schema := compile(t)
	for _, test := range []struct {
		section string
		ok      bool
	}{
		{"cluster: {nodes: 1}", true}, {"cluster: {nodes: 50}", true}, {"cluster: {nodes: 0}", false}, {"cluster: {nodes: 51}", false},
		{"subject: {replicas: 5}", true}, {"subject: {replicas: 6}", false},
		{"subject: {qps: 10000, burst: 20000}", true}, {"subject: {qps: 10001, burst: 20000}", false}, {"subject: {burst: 20001}", false},
		{"subject: {concurrency: 0}", false}, {"subject: {concurrency: 101}", false}, {"seed: 18446744073709551615", true}, {"seed: -1", false},
	} {
		data := []byte("name: x\ndescription: x\nworkload: [{create: {kind: Pod, name: x}}]\n" + test.section + "\n")
		_, err := scenario.Parse("x.yaml", data)
		if (err == nil) != test.ok {
			t.Errorf("%s: the reader's error is %v", test.section, err)
		}
		if err := validateData(t, schema, data); (err == nil) != test.ok {
			t.Errorf("%s: the schema's error is %v", test.section, err)
		}
	}
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("found no file %s, error %v", pattern, err)
	}
	return paths
}

// read checks a file in the same way as gauntlet run: the scenario, the faults and the IDs of
// checks.
func read(t *testing.T, path string) error {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strictly(path, data)
}

func strictly(path string, data []byte) error {
	s, err := scenario.Parse(path, data)
	if err != nil {
		return err
	}
	for _, fault := range s.Faults {
		of, err := catalog.Find(fault.Name)
		if err != nil {
			return fault.Errorf("%w", err)
		}
		if _, err := of.New(fault.Params); err != nil {
			return err
		}
	}
	for _, id := range s.Exercises {
		if _, ok := check.Find(id); !ok {
			return s.Errorf("exercises", "no check %q", id)
		}
	}
	return nil
}

func compile(t *testing.T) *jsonschema.Schema {
	t.Helper()
	data, err := JSONSchema()
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("scenario.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("scenario.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func validate(t *testing.T, schema *jsonschema.Schema, path string) error {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return validateData(t, schema, data)
}

func validateData(t *testing.T, schema *jsonschema.Schema, data []byte) error {
	t.Helper()
	var value any
	if err := yaml.Unmarshal(data, &value); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return schema.Validate(document)
}
