package scenario

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/nearest"
)

// Step is one item of a workload: an operation of a user, a wait for a condition (await), or
// both. In YAML, the name of the operation is a key next to after and await.
type Step struct {
	// After is the time to wait between the end of the previous step and the operation of this
	// step.
	After time.Duration `yaml:"after,omitempty" bounds:"0s..24h"`
	// Operation is the action of the user on an object. It is nil in a step that only waits.
	Operation Operation
	// Await is the condition that the user waits for before the next step. In a step with an
	// operation, await may omit kind and name. The await then waits for the operation's object.
	Await *Await `yaml:"await,omitempty"`
}

// Target names an object of the workload. If a create step with count created several pods, the
// name in that step stands for all of these pods.
type Target struct {
	// Kind is the kind of the object, such as ReplicaSet.
	Kind Kind `yaml:"kind" required:"true"`
	// Name is the name of the object. For the pods of a create step with count, it is the name
	// in that create step.
	Name string `yaml:"name" format:"name" required:"true"`
}

func (t Target) String() string { return string(t.Kind) + " " + t.Name }

// Await waits until an object of the workload meets a condition. The controllers under test may also
// create the object, such as a StatefulSet. If a step creates objects of the same kind, or if the
// kind is one of the table of kinds, the scenario then needs the field operator.
//
// With the condition quiet, the await is about the subject (the controllers under test) instead of an
// object, and has no kind and no name.
type Await struct {
	Target
	// Until is a word in the table of conditions, or a condition on fields of the object. A
	// condition on fields has the syntax of the flag --for of kubectl wait. Inside a YAML mapping
	// in braces, a condition that contains braces needs quotes.
	Until Until `yaml:"until" required:"true"`
	// Within is the maximum time of the wait. If the object does not meet the condition by then, the
	// run ends its faults, and the wait goes on for the time settle.within. If the object does not
	// meet the condition in this time either, the step fails and the workload ends.
	Within time.Duration `yaml:"within" bounds:"1s..10m"`
}

// Until is a condition that an await waits for. It is one of the constants below, or a
// condition on fields (see [Until.FieldCondition]).
type Until string

// These conditions need only one word in an await, such as "ready".
const (
	Scaled    Until = "scaled"    // status.replicas equals spec.replicas, and status.observedGeneration is current.
	Ready     Until = "ready"     // The object is scaled and every replica is ready. For a pod, the pod itself is ready.
	Available Until = "available" // The object is scaled and every replica is available.
	Complete  Until = "complete"  // The Deployment is available and every replica has the latest pod template.
	Served    Until = "served"    // The Endpoints object of the Service has addresses, and all of them are ready.
	Gone      Until = "gone"      // The object does not exist.
	Quiet     Until = "quiet"     // For the time settle.quiet, the subject has sent no write, its watches were open, and no fault held a message. A subject that is frozen, or waits for a back-off, counts as quiet.
)

// Target returns the object on which the operation acts. It returns false for a step that only
// waits.
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
	if a.Until == Quiet {
		return fmt.Sprintf("await quiet within %s", a.Within)
	}
	return fmt.Sprintf("await %s %s within %s", a.Target, a.Until, a.Within)
}

const (
	stepAfter = "after"
	stepAwait = "await"
)

// decodeNode sets the fields of the step s from YAML. The mapping has the fields after and await,
// and one field with the name of the operation.
func (s *Step) decodeNode(d decoder, from *node, path string) error {
	words := append(append([]string{stepAfter}, operationNames()...), stepAwait)
	fields, ok := from.value.(mapping)
	if !ok {
		return d.mismatch(from, path, "a mapping with "+nearest.List(words, "or"))
	}
	found := ""
	var errs []error
	for _, field := range fields {
		var into reflect.Value
		switch row, known := operationNamed(field.name); {
		case field.name == stepAfter:
			into = reflect.ValueOf(&s.After)
		case field.name == stepAwait:
			s.Await = new(Await)
			into = reflect.ValueOf(s.Await)
		case !known:
			errs = append(errs, d.source.errorAt(field.position, path, "unknown field %q; expected %s%s", field.name, nearest.List(words, "or"), advised(reflect.TypeFor[Step](), field.name, words)))
			continue
		case found != "":
			errs = append(errs, d.source.errorAt(field.position, path, "found the operations %s and %s in one step; expected one operation per step", field.name, found))
			continue
		default:
			found, s.Operation = field.name, row.new()
			into = reflect.ValueOf(s.Operation)
		}
		errs = append(errs, d.decode(field.value, into.Elem(), join(path, field.name)))
	}
	return JoinErrors(errs...)
}

// encodeNode returns the step as YAML, for [Scenario.Marshal]. decodeNode reads the result
// again.
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

// complete sets the fields of the step that the file omits and whose values follow from other
// fields.
//
// An operation that supports only one kind gets that kind. An await without kind and name gets
// the kind and the name of the operation's object, unless it awaits that the subject is quiet.
func (s *Step) complete() {
	if s.Operation != nil {
		if row, target := operationOf(s.Operation), s.Operation.target(); target.Kind == "" && len(row.kinds) == 1 {
			target.Kind = row.kinds[0]
		}
		s.Operation.complete()
	}
	if s.Await != nil && s.Await.Target == (Target{}) && s.Await.Until != Quiet {
		if target, ok := s.Target(); ok {
			s.Await.Target = target
		}
	}
}

// completeAPIVersion sets the apiVersion of a create operation that has a manifest and omits the
// apiVersion. The argument kinds has the generic kinds of the scenario. The item with the same
// kind name supplies the apiVersion.
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
