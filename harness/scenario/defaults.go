package scenario

import "time"

// The default values of fields. The decoder sets them before it reads the fields of the
// file. A field without a constant here is required, or has the zero value as its default,
// or gets its default from other fields in a method complete.
const (
	defaultNodes       = 4
	defaultReplicas    = 1 // instances of the subject, not pods of an object
	defaultQPS         = 500
	defaultBurst       = 1000
	defaultConcurrency = 5

	defaultLeaseDuration = 15 * time.Second

	defaultAwaitWithin  = 60 * time.Second
	defaultSettleWithin = 60 * time.Second
	defaultSettleQuiet  = 2 * time.Second
)

// defaulter is implemented by types whose defaults are not the zero values of their fields.
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

// DefaultSubject returns the configuration of the subject in a scenario that omits the section
// subject.
func DefaultSubject() Subject {
	var s Subject
	s.setDefaults()
	return s
}

func (s *Settle) setDefaults() {
	*s = Settle{Within: defaultSettleWithin, Quiet: defaultSettleQuiet}
}

func (a *Await) setDefaults() { *a = Await{Within: defaultAwaitWithin} }

// complete sets fields that the file omits and whose values follow from other fields.
//
// It also tells each fault which generic kinds the workload has, so that the fault can check
// the resources that its parameters name.
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
