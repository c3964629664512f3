package scenario

import "time"

// What a scenario file leaves out. The decoder sets these before it reads the
// fields that are there. The rest stays at its zero value or is required; the
// labels and selector of a created object follow from each other (see
// [Create]).
const (
	defaultNodes       = 4
	defaultReplicas    = 1 // of the subject
	defaultQPS         = 500
	defaultBurst       = 1000
	defaultConcurrency = 5

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
	*s = Subject{Replicas: defaultReplicas, QPS: defaultQPS, Burst: defaultBurst, Concurrency: defaultConcurrency}
}

func (s *Settle) setDefaults() {
	*s = Settle{Within: defaultSettleWithin, Quiet: defaultSettleQuiet}
}

func (c *Create) setDefaults() { *c = Create{Count: 1, Controller: NoController} }

func (d *Delete) setDefaults() { *d = Delete{Propagation: Background} }

func (a *Await) setDefaults() { *a = Await{Within: defaultAwaitWithin} }

// complete fills in what follows from other fields.
func (s *Scenario) complete() {
	for i := range s.Workload {
		step := &s.Workload[i]
		if step.Create != nil {
			step.Create.complete()
		}
		if step.Await != nil {
			step.completeAwait()
		}
	}
}

func (c *Create) complete() {
	if len(c.Labels) == 0 {
		c.Labels = c.Selector
	}
	if len(c.Labels) == 0 {
		c.Labels = map[string]string{"app": c.Name}
	}
	if c.Kind.owner() && len(c.Selector) == 0 {
		c.Selector = c.Labels
	}
}

// completeAwait lets an await that names nothing wait for what its step acts on.
func (s *Step) completeAwait() {
	if s.Await.Kind != "" || s.Await.Name != "" {
		return
	}
	if target, ok := s.Target(); ok {
		s.Await.Kind, s.Await.Name = target.Kind, target.Name
	}
}
