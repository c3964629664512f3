package scenario

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// Step is an operation of a user, an await, or both. In YAML the name of the operation is a
// key next to after and await.
type Step struct {
	// After is the time from the end of the previous step to the operation.
	After time.Duration `yaml:"after,omitempty" bounds:"0s..5m"`
	// Operation is the operation; nil if the step only waits.
	Operation Operation
	// Await is the condition that the user waits for before the next step. In a step with
	// an operation, await may omit kind and name. The defaults are those of the operation.
	Await *Await `yaml:"await,omitempty"`
}

// Target is an object of the workload, or all pods of a create step with count.
type Target struct {
	// Kind is the kind of the object.
	Kind Kind `yaml:"kind" required:"true"`
	// Name is the name of the object. For several pods, it is the name in their create step.
	Name string `yaml:"name" format:"name" required:"true"`
}

func (t Target) String() string { return string(t.Kind) + " " + t.Name }

// Await waits for a condition of an object of the workload.
type Await struct {
	Target
	// Until is the condition: one of the words below, or a condition on fields of the object
	// in the syntax of kubectl wait. Text with braces needs quotes within { }.
	Until Until `yaml:"until" required:"true"`
	// Within is the timeout of the wait. After the timeout the step fails, and the workload
	// ends.
	Within time.Duration `yaml:"within" bounds:"1s..10m"`
}

// Until is a condition that a step waits for.
type Until string

// The conditions.
const (
	Scaled    Until = "scaled"    // The field status.replicas equals spec.replicas, and status.observedGeneration is current.
	Ready     Until = "ready"     // The object is scaled and every replica is ready. For a pod, the pod itself is ready.
	Available Until = "available" // The object is scaled and every replica is available.
	Complete  Until = "complete"  // The Deployment is available and every replica has the latest template.
	Served    Until = "served"    // The Endpoints object of the Service has addresses, and all of them are ready.
	Gone      Until = "gone"      // The object does not exist.
)

// Target returns the object of the operation, and false for a step that only waits.
func (s *Step) Target() (Target, bool) {
	if s.Operation == nil {
		return Target{}, false
	}
	return *s.Operation.target(), true
}

// String returns the step as text, such as "scale ReplicaSet web to 5".
func (s Step) String() string {
	var words []string
	if s.Operation != nil {
		words = append(words, s.Operation.String())
	}
	if s.Await != nil {
		words = append(words, s.Await.String())
	}
	return strings.Join(words, ", then ")
}

func (a Await) String() string {
	return fmt.Sprintf("await %s %s within %s", a.Target, a.Until, a.Within)
}

const (
	stepAfter = "after"
	stepAwait = "await"
)

// decodeNode reads a step with its fields after and await, and one operation.
func (s *Step) decodeNode(d decoder, from *node, path string) error {
	words := append(append([]string{stepAfter}, operationNames()...), stepAwait)
	fields, ok := from.value.(mapping)
	if !ok {
		return d.mismatch(from, path, "a mapping with "+list(words, "or"))
	}
	found := ""
	for _, field := range fields {
		var into reflect.Value
		switch row, known := operationNamed(field.name); {
		case field.name == stepAfter:
			into = reflect.ValueOf(&s.After)
		case field.name == stepAwait:
			s.Await = new(Await)
			into = reflect.ValueOf(s.Await)
		case !known:
			return d.source.errorAt(field.position, path, "unknown field %q; expected %s", field.name, list(words, "or"))
		case found != "":
			return d.source.errorAt(field.position, path, "found %s beside %s; expected one operation a step", field.name, found)
		default:
			found, s.Operation = field.name, row.new()
			into = reflect.ValueOf(s.Operation)
		}
		if err := d.decode(field.value, into.Elem(), join(path, field.name)); err != nil {
			return err
		}
	}
	return nil
}

// encodeNode writes a step in the form that decodeNode reads.
func (s Step) encodeNode() *node {
	fields := mapping{}
	if s.After != 0 {
		fields = append(fields, entry{name: stepAfter, value: encode(reflect.ValueOf(s.After))})
	}
	if s.Operation != nil {
		fields = append(fields, entry{name: operationOf(s.Operation).name, value: encode(reflect.ValueOf(s.Operation))})
	}
	if s.Await != nil {
		fields = append(fields, entry{name: stepAwait, value: encode(reflect.ValueOf(s.Await))})
	}
	return &node{value: fields}
}

// complete sets the fields that are derived from other fields. An operation that supports
// one kind gets that kind. An await without kind and name gets the object of the operation.
func (s *Step) complete() {
	if s.Operation != nil {
		if row, target := operationOf(s.Operation), s.Operation.target(); target.Kind == "" && len(row.kinds) == 1 {
			target.Kind = row.kinds[0]
		}
		s.Operation.complete()
	}
	if s.Await != nil && s.Await.Target == (Target{}) {
		if target, ok := s.Target(); ok {
			s.Await.Target = target
		}
	}
}

// completeAPIVersion sets the apiVersion of a generic create to the one that another create
// of the kind has.
func (s *Step) completeAPIVersion(kinds []kube.Kind) {
	create, ok := s.Operation.(*Create)
	if !ok || !create.Kind.IsGeneric() || create.APIVersion != "" {
		return
	}
	for _, kind := range kinds {
		if kind.Name == string(create.Kind) && kind.GVR.Version != "" {
			create.APIVersion = kind.APIVersion()
		}
	}
}
