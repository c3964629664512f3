package scenario

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Operation is an operation of a user, one of the types in the table of operations. To add
// an operation, add its type with [Target] embedded, its String method and a row of the
// table. Then implement it in package workload.
type Operation interface {
	// String returns the operation as text, such as "scale ReplicaSet web to 5".
	String() string

	target() *Target
	// complete sets the fields that are derived from other fields.
	complete()
	// validate checks all fields except the target.
	validate(v *validator, path string)
}

// operation is a row of the table of operations.
type operation struct {
	name   string // the name in scenarios
	effect effect
	kinds  []Kind // of the targets; a scenario may omit the kind if there is only one
	// generic is true if the target may be of a generic kind.
	generic bool
	new     func() Operation
}

// effect is the effect of an operation on its target.
type effect int

const (
	creates effect = iota // the target must not exist before the operation
	updates               // the target must exist
	deletes               // the target must exist, and is gone after the operation
)

var operations = []operation{
	{"create", creates, allKinds, true, func() Operation { return new(Create) }},
	{"scale", updates, owners, true, func() Operation { return new(Scale) }},
	{"delete", deletes, allKinds, true, func() Operation { return new(Delete) }},
	{"rollout", updates, []Kind{Deployment}, false, func() Operation { return new(Rollout) }},
	{"pause", updates, []Kind{Deployment}, false, func() Operation { return new(Pause) }},
	{"resume", updates, []Kind{Deployment}, false, func() Operation { return new(Resume) }},
	{"rollback", updates, []Kind{Deployment}, false, func() Operation { return new(Rollback) }},
	{"label", updates, allKinds, true, func() Operation { return new(Label) }},
	{"annotate", updates, allKinds, true, func() Operation { return new(Annotate) }},
	{"select", updates, []Kind{Service, ReplicationController}, false, func() Operation { return new(Select) }},
	{"configure", updates, owners, false, func() Operation { return new(Configure) }},
	{"publish", updates, []Kind{Service}, false, func() Operation { return new(Publish) }},
	{"patch", updates, allKinds, true, func() Operation { return new(Patch) }},
}

func operationNames() []string {
	var names []string
	for _, row := range operations {
		names = append(names, row.name)
	}
	return names
}

func operationNamed(name string) (operation, bool) {
	i := slices.IndexFunc(operations, func(row operation) bool { return row.name == name })
	if i < 0 {
		return operation{}, false
	}
	return operations[i], true
}

// operationOf returns the row of an operation's type.
func operationOf(op Operation) operation {
	i := slices.IndexFunc(operations, func(row operation) bool { return reflect.TypeOf(row.new()) == reflect.TypeOf(op) })
	return operations[i]
}

// Operations inherit these methods from Target.

func (t *Target) target() *Target             { return t }
func (t *Target) complete()                   {}
func (t *Target) validate(*validator, string) {}

// Scale sets the field spec.replicas of an object.
type Scale struct {
	Target
	// Replicas is the new number of replicas.
	Replicas *int `yaml:"replicas" bounds:"0..20000" required:"true"`
}

func (s *Scale) String() string { return fmt.Sprintf("scale %s to %d", s.Target, *s.Replicas) }

func (s *Scale) validate(v *validator, path string) { v.replicas(path+".replicas", s.Replicas) }

// Delete deletes an object, or all pods of a create step with count.
type Delete struct {
	Target
	// Propagation is the propagation policy of the delete.
	Propagation Propagation `yaml:"propagation"`
}

// Propagation is the propagation policy of a delete.
type Propagation string

// The propagation policies.
const (
	Background Propagation = "background" // The garbage collector deletes the dependents after the owner.
	Foreground Propagation = "foreground" // The garbage collector deletes the dependents before the owner.
	Orphan     Propagation = "orphan"     // The dependents remain, without an owner.
)

func (d *Delete) String() string { return fmt.Sprintf("delete %s (%s)", d.Target, d.Propagation) }

func (d *Delete) setDefaults() { *d = Delete{Propagation: Background} }

func (d *Delete) validate(v *validator, path string) {
	oneOf(v, path+".propagation", d.Propagation, Background, Foreground, Orphan)
}

// Rollout changes the pod template of a Deployment. Templates of the same version are
// equal. Therefore a rollout to an earlier version uses its ReplicaSet again.
type Rollout struct {
	Target
	// Version is the version of the new template, a DNS label.
	Version string `yaml:"version" format:"name" required:"true"`
	// Replicas is a new number of replicas, which the same update sets.
	Replicas *int `yaml:"replicas,omitempty" bounds:"0..20000"`
}

func (r *Rollout) String() string {
	words := fmt.Sprintf("roll %s out to version %s", r.Target, r.Version)
	if r.Replicas != nil {
		words += fmt.Sprintf(" and scale it to %d", *r.Replicas)
	}
	return words
}

func (r *Rollout) validate(v *validator, path string) {
	v.version(path+".version", r.Version)
	if r.Replicas != nil {
		v.replicas(path+".replicas", r.Replicas)
	}
}

// Pause pauses the rollouts of a Deployment.
type Pause struct{ Target }

func (p *Pause) String() string { return "pause " + p.Target.String() }

// Resume resumes the rollouts of a paused Deployment.
type Resume struct{ Target }

func (r *Resume) String() string { return "resume " + r.Target.String() }

// Rollback returns a Deployment to an earlier pod template. It sets the annotation
// deprecated.deployment.rollback.to, and the controller does the rest.
type Rollback struct {
	Target
	// Revision is the revision to return to; 0 is the previous one.
	Revision int `yaml:"revision" bounds:"0..1000000"`
}

func (r *Rollback) String() string {
	if r.Revision == 0 {
		return fmt.Sprintf("roll %s back", r.Target)
	}
	return fmt.Sprintf("roll %s back to revision %d", r.Target, r.Revision)
}

func (r *Rollback) validate(v *validator, path string) {
	v.bounded(path, r)
}

// Patch changes fields of an object, or of all the pods of a create, by a JSON merge patch.
type Patch struct {
	Target
	// Merge is the JSON merge patch: the fields to set. A field with the value null is
	// removed. A list replaces the whole list. The patch must not contain apiVersion, kind,
	// metadata.name, metadata.namespace or status.
	Merge Fields `yaml:"merge" format:"mergePatch" required:"true"`
}

func (p *Patch) String() string {
	return fmt.Sprintf("patch %s with %.200s", p.Target, inline(p.Merge.encodeNode()))
}

func (p *Patch) validate(v *validator, path string) {
	v.check(len(p.Merge) > 0, path+".merge", "found nothing; expected the fields to change, such as spec")
	v.fieldsOf(path+".merge", p.Merge)
}

// changes returns labels to set and keys to remove, in the syntax of kubectl.
func changes(set map[string]string, remove []string) string {
	words := words(set)
	for _, key := range remove {
		words = append(words, key+"-")
	}
	return strings.Join(words, " ")
}

// words returns labels as key=value words in the syntax of kubectl, sorted by key.
func words(labels map[string]string) []string {
	var words []string
	for _, key := range sortedKeys(labels) {
		words = append(words, key+"="+labels[key])
	}
	return words
}

// Label changes the labels of an object, or of all pods of a create step with count. It
// sets or removes at least one label.
type Label struct {
	Target
	// Labels is the labels to set.
	Labels map[string]string `yaml:"labels,omitempty" format:"labels"`
	// Remove is the list of label keys to remove.
	Remove []string `yaml:"remove,omitempty" format:"labelKeys"`
}

func (l *Label) String() string {
	return fmt.Sprintf("label %s %s", l.Target, changes(l.Labels, l.Remove))
}

func (l *Label) validate(v *validator, path string) {
	v.check(len(l.Labels)+len(l.Remove) > 0, path, "found no label; expected labels to set, or keys to remove")
	v.labels(path+".labels", l.Labels)
	v.removed(path, l.Remove, l.Labels, "labels")
}

// Annotate changes the annotations of an object, or of all pods of a create step with
// count. It sets or removes at least one annotation.
type Annotate struct {
	Target
	// Annotations is the annotations to set.
	Annotations map[string]string `yaml:"annotations,omitempty" format:"annotations"`
	// Remove is the list of annotation keys to remove.
	Remove []string `yaml:"remove,omitempty" format:"labelKeys"`
}

func (a *Annotate) String() string {
	return fmt.Sprintf("annotate %s %s", a.Target, changes(a.Annotations, a.Remove))
}

func (a *Annotate) validate(v *validator, path string) {
	v.check(len(a.Annotations)+len(a.Remove) > 0, path, "found no annotation; expected annotations to set, or keys to remove")
	for _, key := range sortedKeys(a.Annotations) {
		v.labelKey(join(path+".annotations", key), key)
	}
	v.removed(path, a.Remove, a.Annotations, "annotations")
}

// Select changes the selector of a Service or ReplicationController. For a
// ReplicationController it also changes the labels of the pod template.
type Select struct {
	Target
	// Selector is the new selector. A Service may have the empty selector {}.
	Selector map[string]string `yaml:"selector" format:"labels" required:"true"`
}

func (s *Select) String() string {
	words := words(s.Selector)
	if len(words) == 0 {
		words = append(words, "nothing")
	}
	return fmt.Sprintf("let %s select %s", s.Target, strings.Join(words, ","))
}

// setDefaults sets the kind Service.
func (s *Select) setDefaults() { *s = Select{Target: Target{Kind: Service}} }

func (s *Select) validate(v *validator, path string) {
	v.check(s.Selector != nil, path+".selector", "found nothing; expected labels, or {} for no selector")
	v.check(s.Kind == Service || len(s.Selector) > 0, path+".selector", "found no label; a %s has a selector", s.Kind)
	v.labels(path+".selector", s.Selector)
}
