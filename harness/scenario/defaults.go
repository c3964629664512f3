package scenario

import "time"

// What a scenario file leaves out. The decoder sets these before it reads the
// fields that are there. The rest stays at its zero value or is required; the
// labels and selector of a created object follow from each other (see
// [Create]), and so on (see the methods called complete).
const (
	defaultNodes       = 4
	defaultReplicas    = 1 // of the subject
	defaultQPS         = 500
	defaultBurst       = 1000
	defaultConcurrency = 5

	defaultLeaseDuration = 15 * time.Second

	defaultAwaitWithin  = 60 * time.Second
	defaultSettleWithin = 60 * time.Second
	defaultSettleQuiet  = 2 * time.Second
)

// defaulter is a value that knows what holds where the file says nothing.
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

// DefaultSubject is the subject of a scenario that says nothing of it.
func DefaultSubject() Subject {
	var s Subject
	s.setDefaults()
	return s
}

func (s *Settle) setDefaults() {
	*s = Settle{Within: defaultSettleWithin, Quiet: defaultSettleQuiet}
}

func (a *Await) setDefaults() { *a = Await{Within: defaultAwaitWithin} }

// complete fills in what follows from other fields.
func (s *Scenario) complete() {
	for i := range s.Workload {
		s.Workload[i].complete()
	}
}
