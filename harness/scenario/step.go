package scenario

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Step is one operation of a user, or a wait, or an operation and the wait that
// follows it.
type Step struct {
	// After is how long the user waits first, since the step before ended.
	After time.Duration `yaml:"after,omitempty"`

	// At most one of these is set.
	Create *Create `yaml:"create,omitempty"`
	Scale  *Scale  `yaml:"scale,omitempty"`
	Delete *Delete `yaml:"delete,omitempty"`

	// Await, if set, is what the user waits for before the next step. Beside an
	// operation it may leave out kind and name: it is then about the same object.
	Await *Await `yaml:"await,omitempty"`
}

// Target is an object of the workload, or all the objects of one create.
type Target struct {
	Kind Kind
	Name string
}

func (t Target) String() string { return string(t.Kind) + " " + t.Name }

// Kind is a kind of object that a workload handles.
type Kind string

// The kinds.
const (
	ReplicaSet            Kind = "ReplicaSet"
	ReplicationController Kind = "ReplicationController"
	Pod                   Kind = "Pod"
)

// kinds says what a workload can do with an object of each kind.
var kinds = []struct {
	kind   Kind
	owner  bool // has replicas, a selector and a template
	untils []Until
}{
	{ReplicaSet, true, []Until{Scaled, Ready, Available, Gone}},
	{ReplicationController, true, []Until{Scaled, Ready, Available, Gone}},
	{Pod, false, []Until{Ready, Gone}},
}

// owner reports whether objects of the kind have replicas.
func (k Kind) owner() bool {
	for _, row := range kinds {
		if row.kind == k {
			return row.owner
		}
	}
	return false
}

// untils returns what can be awaited of objects of the kind.
func (k Kind) untils() []Until {
	for _, row := range kinds {
		if row.kind == k {
			return row.untils
		}
	}
	return nil
}

// Create makes one object, or Count pods.
type Create struct {
	Kind Kind `yaml:"kind"`
	// Name is the object's, or, of several pods, what their names begin with: they
	// are name-0, name-1, ... Other steps reach them all by it.
	Name string `yaml:"name"`
	// Count is the number of pods; 1 for every other kind.
	Count int `yaml:"count,omitempty"`
	// Replicas is required where the kind has replicas, and nil elsewhere.
	Replicas *int `yaml:"replicas,omitempty"`
	// Labels are those of the pod, or of the pod template; by default the selector's,
	// else app: NAME.
	Labels map[string]string `yaml:"labels,omitempty"`
	// Selector is by default the labels; nil where the kind has none.
	Selector        map[string]string `yaml:"selector,omitempty"`
	MinReadySeconds int               `yaml:"minReadySeconds,omitempty"`
	// Controller is who controls the pods; NoController for every other kind.
	Controller Controller `yaml:"controller,omitempty"`
}

// Controller is who controls a pod that the workload makes.
type Controller string

// The controllers of a pod.
const (
	NoController      Controller = "none"    // an orphan
	ForeignController Controller = "foreign" // an object that is no business of the subject's
)

// Names are the names of the objects that the create makes.
func (c *Create) Names() []string {
	if c.Count == 1 {
		return []string{c.Name}
	}
	names := make([]string, c.Count)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", c.Name, i)
	}
	return names
}

// Scale sets the replicas of an object.
type Scale struct {
	Kind     Kind   `yaml:"kind"`
	Name     string `yaml:"name"`
	Replicas *int   `yaml:"replicas"` // required
}

// Delete deletes what a create made.
type Delete struct {
	Kind        Kind        `yaml:"kind"`
	Name        string      `yaml:"name"`
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

// Await waits for what a create made.
type Await struct {
	Kind  Kind   `yaml:"kind"`
	Name  string `yaml:"name"`
	Until Until  `yaml:"until"`
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
	Gone      Until = "gone"      // the object does not exist
)

// Target is what the step acts on; a step that only waits acts on nothing.
func (s *Step) Target() (Target, bool) {
	switch {
	case s.Create != nil:
		return Target{s.Create.Kind, s.Create.Name}, true
	case s.Scale != nil:
		return Target{s.Scale.Kind, s.Scale.Name}, true
	case s.Delete != nil:
		return Target{s.Delete.Kind, s.Delete.Name}, true
	}
	return Target{}, false
}

// String is the step in words, such as "scale ReplicaSet web to 5".
func (s Step) String() string {
	var words []string
	switch {
	case s.Create != nil:
		words = append(words, s.Create.String())
	case s.Scale != nil:
		words = append(words, fmt.Sprintf("scale %s %s to %d", s.Scale.Kind, s.Scale.Name, *s.Scale.Replicas))
	case s.Delete != nil:
		words = append(words, fmt.Sprintf("delete %s %s (%s)", s.Delete.Kind, s.Delete.Name, s.Delete.Propagation))
	}
	if s.Await != nil {
		words = append(words, s.Await.String())
	}
	return strings.Join(words, ", then ")
}

func (c Create) String() string {
	var b strings.Builder
	if c.Count > 1 {
		fmt.Fprintf(&b, "create %d %ss %s", c.Count, c.Kind, c.Name)
	} else {
		fmt.Fprintf(&b, "create %s %s", c.Kind, c.Name)
	}
	if c.Replicas != nil {
		fmt.Fprintf(&b, " with %d replicas", *c.Replicas)
	}
	if c.Controller == ForeignController {
		b.WriteString(" under a foreign controller")
	}
	return b.String()
}

func (a Await) String() string {
	return fmt.Sprintf("await %s %s %s within %s", a.Kind, a.Name, a.Until, a.Within)
}

// knownKinds are the names of the kinds, of those with replicas only if so asked.
func knownKinds(ownersOnly bool) []Kind {
	var known []Kind
	for _, row := range kinds {
		if row.owner || !ownersOnly {
			known = append(known, row.kind)
		}
	}
	return slices.Clip(known)
}
