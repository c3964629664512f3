package scenario

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Operation is what a user does in a step: one of the types in the table of
// operations. To add one: its type, with [Target] embedded, its words, and a row;
// and in package workload what it does.
type Operation interface {
	// String is the operation in words, such as "scale ReplicaSet web to 5".
	String() string

	target() *Target
	// complete fills in what follows from other fields.
	complete()
	// validate checks everything but the target.
	validate(v *validator, path string)
}

// operation is a row of the table of operations.
type operation struct {
	name   string // in scenarios
	effect effect
	kinds  []Kind // of what it can act on; when it is one, scenarios may leave it out
	new    func() Operation
}

// effect is what becomes of the target.
type effect int

const (
	makes effect = iota // it must not be there before
	uses                // it must be there
	ends                // it must be there, and is not afterwards
)

var operations = []operation{
	{"create", makes, allKinds, func() Operation { return new(Create) }},
	{"scale", uses, owners, func() Operation { return new(Scale) }},
	{"delete", ends, allKinds, func() Operation { return new(Delete) }},
	{"rollout", uses, []Kind{Deployment}, func() Operation { return new(Rollout) }},
	{"pause", uses, []Kind{Deployment}, func() Operation { return new(Pause) }},
	{"resume", uses, []Kind{Deployment}, func() Operation { return new(Resume) }},
	{"rollback", uses, []Kind{Deployment}, func() Operation { return new(Rollback) }},
	{"label", uses, allKinds, func() Operation { return new(Label) }},
	{"annotate", uses, allKinds, func() Operation { return new(Annotate) }},
	{"select", uses, []Kind{Service, ReplicationController}, func() Operation { return new(Select) }},
	{"configure", uses, owners, func() Operation { return new(Configure) }},
	{"publish", uses, []Kind{Service}, func() Operation { return new(Publish) }},
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

// operationOf is the row of an operation's type.
func operationOf(op Operation) operation {
	i := slices.IndexFunc(operations, func(row operation) bool { return reflect.TypeOf(row.new()) == reflect.TypeOf(op) })
	return operations[i]
}

// What an operation has that embeds a Target and says nothing else.

func (t *Target) target() *Target             { return t }
func (t *Target) complete()                   {}
func (t *Target) validate(*validator, string) {}

// Scale sets the replicas of an object.
type Scale struct {
	Target
	Replicas *int `yaml:"replicas"` // required
}

func (s *Scale) String() string { return fmt.Sprintf("scale %s to %d", s.Target, *s.Replicas) }

func (s *Scale) validate(v *validator, path string) { v.replicas(path+".replicas", s.Replicas) }

// Delete deletes what a create made.
type Delete struct {
	Target
	Propagation Propagation `yaml:"propagation"`
}

// Propagation is what becomes of the dependents of a deleted object.
type Propagation string

// The propagations.
const (
	Background Propagation = "background" // they go after it
	Foreground Propagation = "foreground" // they go before it
	Orphan     Propagation = "orphan"     // they stay
)

func (d *Delete) String() string { return fmt.Sprintf("delete %s (%s)", d.Target, d.Propagation) }

func (d *Delete) setDefaults() { *d = Delete{Propagation: Background} }

func (d *Delete) validate(v *validator, path string) {
	oneOf(v, path+".propagation", d.Propagation, Background, Foreground, Orphan)
}

// Rollout gives a Deployment another pod template. Templates of one version are
// equal, so that going back to a version is going back to its ReplicaSet.
type Rollout struct {
	Target
	Version string `yaml:"version"` // required; see [Create]
	// Replicas, if set, is scaled to in the same write.
	Replicas *int `yaml:"replicas,omitempty"`
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

// Pause keeps a Deployment from rolling out.
type Pause struct{ Target }

func (p *Pause) String() string { return "pause " + p.Target.String() }

// Resume undoes a pause.
type Resume struct{ Target }

func (r *Resume) String() string { return "resume " + r.Target.String() }

// Rollback asks the controller, by annotation, to go back to an earlier template.
type Rollback struct {
	Target
	Revision int `yaml:"revision"` // 0 is the one before the present one
}

func (r *Rollback) String() string {
	if r.Revision == 0 {
		return fmt.Sprintf("roll %s back", r.Target)
	}
	return fmt.Sprintf("roll %s back to revision %d", r.Target, r.Revision)
}

func (r *Rollback) validate(v *validator, path string) {
	v.number(path+".revision", r.Revision, 0, revisionMax)
}

// changes are labels to set and keys to remove, as kubectl takes them.
func changes(set map[string]string, remove []string) string {
	words := words(set)
	for _, key := range remove {
		words = append(words, key+"-")
	}
	return strings.Join(words, " ")
}

// words are labels as kubectl takes them, in the order of their keys.
func words(labels map[string]string) []string {
	var words []string
	for _, key := range sortedKeys(labels) {
		words = append(words, key+"="+labels[key])
	}
	return words
}

// Label changes labels of what a create made; of its pods, if it made pods.
type Label struct {
	Target
	Labels map[string]string `yaml:"labels,omitempty"` // to set
	Remove []string          `yaml:"remove,omitempty"` // keys
}

func (l *Label) String() string {
	return fmt.Sprintf("label %s %s", l.Target, changes(l.Labels, l.Remove))
}

func (l *Label) validate(v *validator, path string) {
	v.check(len(l.Labels)+len(l.Remove) > 0, path, "found no label; expected labels to set, or keys to remove")
	v.labels(path+".labels", l.Labels)
	v.removed(path, l.Remove, l.Labels, "labels")
}

// Annotate changes annotations of what a create made: of its pods, if it made pods,
// and else of the object itself.
type Annotate struct {
	Target
	Annotations map[string]string `yaml:"annotations,omitempty"` // to set
	Remove      []string          `yaml:"remove,omitempty"`      // keys
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

// Select gives a Service another selector, or a ReplicationController another
// selector and its pod template the same labels.
type Select struct {
	Target
	Selector map[string]string `yaml:"selector"` // required; {} is none, of a Service
}

func (s *Select) String() string {
	words := words(s.Selector)
	if len(words) == 0 {
		words = append(words, "nothing")
	}
	return fmt.Sprintf("let %s select %s", s.Target, strings.Join(words, ","))
}

// setDefaults: who says nothing means a Service.
func (s *Select) setDefaults() { *s = Select{Target: Target{Kind: Service}} }

func (s *Select) validate(v *validator, path string) {
	v.check(s.Selector != nil, path+".selector", "found nothing; expected labels, or {} for no selector")
	v.check(s.Kind == Service || len(s.Selector) > 0, path+".selector", "found no label; a %s has a selector", s.Kind)
	v.labels(path+".selector", s.Selector)
}
