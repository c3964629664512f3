package scenario

import "time"

// The default values. The decoder sets them before it reads the fields of the file. A field
// without a value here is required, or its default is the zero value, or the method complete
// of its type derives the default from other fields.
const (
	defaultNodes       = 4
	defaultReplicas    = 1 // the defaults of the subject
	defaultQPS         = 500
	defaultBurst       = 1000
	defaultConcurrency = 5

	defaultLeaseDuration = 15 * time.Second

	defaultAwaitWithin  = 60 * time.Second
	defaultSettleWithin = 60 * time.Second
	defaultSettleQuiet  = 2 * time.Second
)

// defaulter is a type with default values.
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

// DefaultSubject returns the subject of a scenario without a section subject.
func DefaultSubject() Subject {
	var s Subject
	s.setDefaults()
	return s
}

func (s *Settle) setDefaults() {
	*s = Settle{Within: defaultSettleWithin, Quiet: defaultSettleQuiet}
}

func (a *Await) setDefaults() { *a = Await{Within: defaultAwaitWithin} }

// complete sets the fields of the scenario that the file omits and that are derived from
// other fields.
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
