package scenario

import (
	"fmt"
	"reflect"
	"strings"
	"time"
)

// Step is one operation of a user, or a wait, or an operation and the wait that
// follows it. In YAML the operation stands beside after and await, under its
// name in the table of operations.
type Step struct {
	// After is how long the user waits first, since the step before ended.
	After time.Duration
	// Operation is what the user does; nil in a step that only waits.
	Operation Operation
	// Await, if set, is what the user waits for before the next step. Beside an
	// operation it may leave out kind and name: it is then about the same object.
	Await *Await
}

// Target is an object of the workload, or all the objects of one create.
type Target struct {
	Kind Kind   `yaml:"kind"`
	Name string `yaml:"name"`
}

func (t Target) String() string { return string(t.Kind) + " " + t.Name }

// Await waits for what a create made.
type Await struct {
	Target
	Until Until `yaml:"until"`
	// Within bounds the wait. An await that is not met ends the workload.
	Within time.Duration `yaml:"within"`
}

// Until is what an await waits for.
type Until string

// What can be waited for.
const (
	Scaled    Until = "scaled"    // status.replicas is spec.replicas, of the latest generation
	Ready     Until = "ready"     // scaled, and every replica ready; of a pod, its own readiness
	Available Until = "available" // scaled, and every replica available
	Complete  Until = "complete"  // available, and every replica is of the latest template
	Served    Until = "served"    // of a Service: its Endpoints has addresses, and all are ready
	Gone      Until = "gone"      // the object does not exist
)

// Target is what the step acts on; a step that only waits acts on nothing.
func (s *Step) Target() (Target, bool) {
	if s.Operation == nil {
		return Target{}, false
	}
	return *s.Operation.target(), true
}

// String is the step in words, such as "scale ReplicaSet web to 5".
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

// decodeNode reads a step: after, await and one operation.
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

// encodeNode writes what decodeNode reads.
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

// complete fills in what follows from other fields: the one kind that an
// operation has to do with, and that an await which names nothing waits for what
// its step acts on.
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
