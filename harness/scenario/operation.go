package scenario

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Operation is an action of a user on an object, such as [Scale]. Each type of operation has a
// row in the table operations. To add an operation, add a type that embeds [Target] and has a
// String method. Then add a row to the table, and implement the operation in package workload.
type Operation interface {
	// String returns the operation as text, such as "scale ReplicaSet web to 5".
	String() string

	// target returns the object on which the operation acts.
	target() *Target
	// complete sets fields that the file omits and whose values follow from other fields. For
	// example, the labels of a new ReplicaSet follow from the selector.
	complete()
	// validate reports invalid fields to the validator. It does not check the target. The
	// argument path is the path of the operation in the file, such as "workload[2].scale".
	validate(v *validator, path string)
}

// operation is a row of the table of all operations that a step of a workload can have. It
// describes one type of [Operation].
type operation struct {
	name   string // the name of the operation in YAML
	effect effect
	// kinds are the kinds of objects that the operation supports. If it supports only one
	// kind, a scenario may omit the field kind.
	kinds []Kind
	// generic is true if the operation also supports kinds that need a manifest, such as
	// StatefulSet.
	generic bool
	// kubernetes is true if the operation also supports kinds of Kubernetes that no step creates, such
	// as StatefulSet. The controllers under test may create objects of these kinds.
	kubernetes bool
	// new returns an empty value of the operation's Go type, such as *Scale, into which a file
	// is decoded.
	new func() Operation
}

// effect says whether the target of an operation must exist before and after the operation.
type effect int

const (
	creates effect = iota // The target must not exist before the operation.
	updates               // The target must exist before the operation, and remains.
	deletes               // The target must exist before the operation, which deletes it.
)

// operations is the table of all operations, in the order of the reference documentation.
var operations = []operation{
	{"create", creates, allKinds, true, false, func() Operation { return new(Create) }},
	{"scale", updates, owners, true, false, func() Operation { return new(Scale) }},
	{"delete", deletes, allKinds, true, false, func() Operation { return new(Delete) }},
	{"rollout", updates, []Kind{Deployment}, false, false, func() Operation { return new(Rollout) }},
	{"pause", updates, []Kind{Deployment}, false, false, func() Operation { return new(Pause) }},
	{"resume", updates, []Kind{Deployment}, false, false, func() Operation { return new(Resume) }},
	{"rollback", updates, []Kind{Deployment}, false, false, func() Operation { return new(Rollback) }},
	{"label", updates, allKinds, true, false, func() Operation { return new(Label) }},
	{"annotate", updates, allKinds, true, false, func() Operation { return new(Annotate) }},
	{"select", updates, []Kind{Service, ReplicationController}, false, false, func() Operation { return new(Select) }},
	{"configure", updates, owners, false, false, func() Operation { return new(Configure) }},
	{"publish", updates, []Kind{Service}, false, false, func() Operation { return new(Publish) }},
	{"patch", updates, allKinds, true, false, func() Operation { return new(Patch) }},
}

// operationNames returns the names of all operations in YAML, such as "scale", for error messages.
func operationNames() []string {
	var names []string
	for _, row := range operations {
		names = append(names, row.name)
	}
	return names
}

// operationNamed returns the row of the table operations with a YAML name, such as "scale". It
// returns false if no operation has this name.
func operationNamed(name string) (operation, bool) {
	i := slices.IndexFunc(operations, func(row operation) bool { return row.name == name })
	if i < 0 {
		return operation{}, false
	}
	return operations[i], true
}

// operationOf returns the row of the table operations for the Go type of the argument op, such as
// *Scale. Every Go type that implements [Operation] must have a row.
func operationOf(op Operation) operation {
	i := slices.IndexFunc(operations, func(row operation) bool { return reflect.TypeOf(row.new()) == reflect.TypeOf(op) })
	return operations[i]
}

// Every operation embeds Target and inherits these methods. If an operation has fields to
// complete or to validate, it overrides the methods complete and validate.

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

func (s *Scale) validate(v *validator, path string) {
	v.replicas(path+".replicas", s.Replicas)
	if schema := v.objectSchema(s.Kind); schema != nil && !v.invalid(path) {
		_, err := checkJSONPath("{.spec.replicas}", schema)
		v.check(err == nil, path+".kind", "found %s, which has no field spec.replicas; expected a kind with this field", s.Kind)
	}
}

// Delete deletes an object. If a create step with count created several pods, it deletes all of
// these pods.
type Delete struct {
	Target
	// Propagation is the propagation policy of the delete request. It says what happens to the
	// object's dependents, such as the pods of a ReplicaSet.
	Propagation Propagation `yaml:"propagation"`
}

// Propagation is the propagation policy of a delete request. It says what happens to the
// object's dependents, such as the pods of a ReplicaSet.
type Propagation string

// These are the values of [Propagation], as in the field propagationPolicy of DeleteOptions.
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

// Rollout changes the pod template of a Deployment. Two templates with the same version are
// equal. Therefore the Deployment controller reuses the existing ReplicaSet if a rollout returns
// to an earlier version.
type Rollout struct {
	Target
	// Version is a DNS label that identifies the new pod template, such as v2.
	Version string `yaml:"version" format:"name" required:"true"`
	// Replicas is the new value of spec.replicas, which the same API request sets. Without this
	// field, the number of replicas does not change.
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

// Pause sets spec.paused of a Deployment, which pauses its rollouts.
type Pause struct{ Target }

func (p *Pause) String() string { return "pause " + p.Target.String() }

// Resume removes the pause of a Deployment: it sets spec.paused to false.
type Resume struct{ Target }

func (r *Resume) String() string { return "resume " + r.Target.String() }

// Rollback returns a Deployment to the pod template of an earlier revision. It sets the
// annotation deprecated.deployment.rollback.to, and the Deployment controller then restores the
// template.
type Rollback struct {
	Target
	// Revision is the revision to return to. 0 means the previous revision.
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

// Patch changes fields of an object by a JSON merge patch. If a create step with count created
// several pods, it patches all of these pods. It needs exactly one of the fields merge and status.
type Patch struct {
	Target
	// Merge is the JSON merge patch: the fields to set. A field with the value null is removed.
	// A list in the patch replaces the whole list of the object. The patch must not contain
	// apiVersion, kind, metadata.name, metadata.namespace or status.
	Merge Fields `yaml:"merge,omitempty" format:"mergePatch"`
	// Status is the JSON merge patch of the status, which the step sends to the subresource status. It
	// does what another client would do that writes the status. The object cannot be a pod, because
	// only its kubelet writes the status.
	Status Fields `yaml:"status,omitempty" format:"statusPatch"`
}

func (p *Patch) String() string {
	if len(p.Status) > 0 {
		return fmt.Sprintf("patch the status of %s with %.200s", p.Target, inline(p.Status.encodeNode()))
	}
	return fmt.Sprintf("patch %s with %.200s", p.Target, inline(p.Merge.encodeNode()))
}

func (p *Patch) validate(v *validator, path string) {
	v.check(len(p.Merge) > 0 || len(p.Status) > 0, path+".merge", "found nothing; expected the fields to change, such as spec")
	v.check(len(p.Merge) == 0 || len(p.Status) == 0, path+".status", "found the fields merge and status; expected one of them in a step")
	v.check(len(p.Status) == 0 || p.Kind != Pod, path+".status", "found a Pod; expected another kind, because only the kubelet writes the status of a pod")
	v.fieldsOf(path+".merge", p.Kind, p.Merge)
	v.refusedFields(path+".merge", p.Kind, p.Merge.Copy(), true)
	if len(p.Status) > 0 {
		v.status(path, p.Kind, p.Status)
	}
}

// changes formats changes of labels or annotations as arguments of kubectl label, such as
// "app=web tier-". A key with the suffix - is removed.
func changes(set map[string]string, remove []string) string {
	words := words(set)
	for _, key := range remove {
		words = append(words, key+"-")
	}
	return strings.Join(words, " ")
}

// words formats each label as KEY=VALUE, such as "app=web". The result is sorted by key.
func words(labels map[string]string) []string {
	var words []string
	for _, key := range sortedKeys(labels) {
		words = append(words, key+"="+labels[key])
	}
	return words
}

// Label sets and removes labels of an object. If a create step with count created several pods,
// it changes all of these pods. The step must set or remove at least one label.
type Label struct {
	Target
	// Labels is the labels to set, by key.
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

// Annotate sets and removes annotations of an object. If a create step with count created
// several pods, it changes all of these pods. The step must set or remove at least one
// annotation.
type Annotate struct {
	Target
	// Annotations is the annotations to set, by key.
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

// Select replaces the selector of a Service or ReplicationController. For a
// ReplicationController, it also replaces the labels of the pod template with the labels of the
// selector.
type Select struct {
	Target
	// Selector is the labels of the new selector. A Service may have the empty selector {}.
	Selector map[string]string `yaml:"selector" format:"labels" required:"true"`
}

func (s *Select) String() string {
	words := words(s.Selector)
	if len(words) == 0 {
		words = append(words, "nothing")
	}
	return fmt.Sprintf("let %s select %s", s.Target, strings.Join(words, ","))
}

// setDefaults sets the kind to Service. The operation select supports two kinds, so the file may
// omit the kind only because of this default.
func (s *Select) setDefaults() { *s = Select{Target: Target{Kind: Service}} }

func (s *Select) validate(v *validator, path string) {
	v.check(s.Selector != nil, path+".selector", "found nothing; expected labels, or {} for no selector")
	v.check(s.Kind == Service || len(s.Selector) > 0, path+".selector", "found no label; expected at least one, because a %s must have a selector", s.Kind)
	v.labels(path+".selector", s.Selector)
}
