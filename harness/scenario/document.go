package scenario

import (
	"maps"
	"reflect"
	"regexp"
	"slices"

	"github.com/kube-gauntlet/gauntlet/harness/nearest"
)

// Document is a YAML file that is not a scenario, such as a file that describes the controllers
// under test. gauntlet reads it as strictly as a scenario.
type Document struct{ source *source }

// manifestPattern matches a manifest of Kubernetes whose first field is apiVersion, and its kind. A
// manifest may have several documents.
var manifestPattern = regexp.MustCompile(`\A(?:(?:#.*|---[ \t]*|[ \t]*)\n)*apiVersion:.*\n(?:#.*\n)*kind:[ \t]*([A-Za-z]{1,60})`)

// LoadDocument reads the YAML file at path into a Go value. The argument into is a pointer to this
// value. LoadDocument is as strict as [Load]: an unknown field or a value of the wrong type is an
// error with file, line and column.
func LoadDocument(path string, into any) (Document, error) {
	data, err := read(path, "a subject file")
	if err != nil {
		return Document{}, err
	}
	document := Document{&source{file: path}}
	if kind := manifestPattern.FindSubmatch(data); kind != nil {
		return document, document.source.errorAt(position{}, "", "found the manifest of %s; expected a subject file; list the manifest in subject.manifests of a subject file", nearest.WithArticle(string(kind[1])))
	}
	root, err := parseNode(document.source, data)
	if err != nil {
		return document, err
	}
	document.source.root = root
	switch top, _ := root.value.(mapping); {
	case isBaseline(top):
		return document, document.source.errorAt(position{}, "", "found a baseline; expected a subject file; pass the baseline with the flag --baseline")
	case top.field("workload") != nil:
		return document, document.source.errorAt(position{}, "", "found a scenario; expected a subject file; pass the scenario as an argument")
	}
	if err := document.checkFields(root, reflect.TypeOf(into).Elem()); err != nil {
		return document, err
	}
	return document, decoder{source: document.source}.decode(root, reflect.ValueOf(into).Elem(), "")
}

// otherFields has fields that users know from Deployments, and what a subject file has in place of them.
var otherFields = map[string]string{
	"image":    "exec, the path of the program, because a run starts it as a process and not in a container",
	"command":  "exec, the path of the program, and args, its arguments",
	"replicas": "the field subject.replicas of the scenario",
}

// checkFields returns an error about a field of the subject that has another name or place. A field at the top
// belongs inside the field subject; most likely, the user forgot to indent it.
func (d Document) checkFields(root *node, into reflect.Type) error {
	inside, ok := into.FieldByName("Subject")
	top, _ := root.value.(mapping)
	if !ok {
		return nil
	}
	for _, name := range fieldNames(inside.Type) {
		if top.field(name) != nil {
			return d.Errorf(name, "found the field %s at the top of the file; expected it inside the field subject, with more indentation", name)
		}
	}
	value := top.field("subject")
	if value == nil {
		return nil
	}
	fields, _ := value.value.(mapping)
	for _, name := range slices.Sorted(maps.Keys(otherFields)) {
		if fields.field(name) != nil {
			return d.Errorf("subject."+name, "found the field %s; expected %s", name, otherFields[name])
		}
	}
	return nil
}

// Errorf returns an error about the field at a path, such as "subject.args[1]". The error begins
// with the file and the position of the field. The verb %w in the argument format wraps an error.
func (d Document) Errorf(path, format string, args ...any) error {
	return d.source.errorAt(d.source.find(path), path, format, args...)
}

// CheckOperator returns the errors about invalid fields of o, or nil. The argument o is the
// field operator of the document. It describes controllers under test that are not part of
// Kubernetes.
func (d Document) CheckOperator(o *Operator) error {
	v := &validator{scenario: &Scenario{source: d.source, Operator: o}, elsewhere: "one of a CustomResourceDefinition in subject.manifests, "}
	v.operator(o)
	return JoinErrors(v.errs...)
}
