package scenario

import "time"

// These are the default values of scenario fields. The decoder sets them before it reads the fields
// of the file.
//
// Some defaults, such as the propagation of a delete, have no constant here: a method named
// setDefaults contains the value. All other fields without a constant are required, have the zero
// value as their default, or get their default from other fields. In the last case, a method named
// complete sets the default.
const (
	defaultNodes       = 4
	defaultReplicas    = 1 // instances of the controllers under test, not pods of an object
	defaultQPS         = 500
	defaultBurst       = 1000
	defaultConcurrency = 5

	defaultLeaseDuration = 15 * time.Second

	defaultAwaitWithin  = 60 * time.Second
	defaultSettleWithin = 60 * time.Second
	defaultSettleQuiet  = 2 * time.Second
)

// defaulter is implemented by those structs of a scenario that have a field whose default is not
// the zero value.
type defaulter interface{ setDefaults() }

func (s *Scenario) setDefaults() {
	s.Cluster.setDefaults()
	s.Subject.setDefaults()
	s.Settle.setDefaults()
}

func (c *Cluster) setDefaults() { *c = Cluster{Nodes: defaultNodes} }

func (s *Subject) setDefaults() {
	*s = Subject{
		Replicas: defaultReplicas, QPS: defaultQPS, Burst: defaultBurst, Concurrency: defaultConcurrency,
		LeaseDuration: defaultLeaseDuration,
	}
}

// DefaultSubject returns the configuration of the controllers under test in a scenario file that
// omits the top-level field subject.
func DefaultSubject() Subject {
	var s Subject
	s.setDefaults()
	return s
}

func (s *Settle) setDefaults() {
	*s = Settle{Within: defaultSettleWithin, Quiet: defaultSettleQuiet}
}

func (a *Await) setDefaults() { *a = Await{Within: defaultAwaitWithin} }

// complete sets fields that the file omits and whose values follow from other fields. For
// example, an await without a kind gets the kind of the step's object.
//
// complete also gives each fault the list of the scenario's generic kinds. With this list, the
// fault checks the resources that its parameters name.
func (s *Scenario) complete() {
	for i := range s.Workload {
		s.Workload[i].complete()
	}
	kinds := s.GenericKinds()
	for i := range s.Workload {
		s.Workload[i].completeAPIVersion(kinds)
	}
	for i := range s.Faults {
		s.Faults[i].Params.kinds = &kinds
	}
}
