// Package sweep plans one run of a scenario for every write of the subject. Each run has a
// fault at exactly that write. The package reads histories and returns scenarios. It runs
// nothing.
package sweep

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/kube-gauntlet/gauntlet/faults/processes"
	"github.com/kube-gauntlet/gauntlet/faults/requests"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// Write identifies a write of the subject: the Nth write, counted from 1, with a verb,
// resource and subresource.
type Write struct {
	Verb, Resource, Subresource string
	Nth                         int
}

func (w Write) String() string {
	resource := w.Resource
	if w.Subresource != "" {
		resource += "/" + w.Subresource
	}
	return fmt.Sprintf("%s of %s number %d", w.Verb, resource, w.Nth)
}

// Writes returns the writes of the subject in a history, in order.
func Writes(records iter.Seq2[*history.Record, error]) ([]Write, error) {
	var all []Write
	counts := map[Write]int{}
	for record, err := range records {
		if err != nil {
			return nil, err
		}
		if r := record.Request; r != nil && r.IsWrite() {
			kind := Write{Verb: r.Verb, Resource: r.Resource, Subresource: r.Subresource}
			counts[kind]++
			kind.Nth = counts[kind]
			all = append(all, kind)
		}
	}
	return all, nil
}

// settleWithin is the time limit of the awaits that WithoutFaults adds.
const settleWithin = time.Minute

// WithoutFaults returns the scenario without faults. It adds awaits until all objects have
// settled to the end of the workload. Otherwise a fault at a late write would not begin,
// because faults begin only during the workload.
func WithoutFaults(s *scenario.Scenario) *scenario.Scenario {
	calm := s.Clone()
	calm.Faults, calm.Exercises = nil, nil
	for _, target := range calm.ExistingObjects() {
		if until, ok := settled(calm, target); ok {
			calm.Workload = append(calm.Workload, scenario.Step{
				Await: &scenario.Await{Target: target, Until: until, Within: settleWithin},
			})
		}
	}
	return calm
}

// settled returns the condition of a settled object: complete if its kind has this condition,
// otherwise available. It returns false for other kinds. Which field shows that a generic
// object has settled is unknown, so the await of its own last step must suffice.
func settled(s *scenario.Scenario, target scenario.Target) (scenario.Until, bool) {
	conditions := conditionsOf(target.Kind)
	paused := slices.ContainsFunc(s.Workload, func(step scenario.Step) bool { return pauses(step, target) })
	switch {
	case slices.Contains(conditions, scenario.Complete) && !paused: // a pause may prevent the rollout of its last pod template
		return scenario.Complete, true
	case slices.Contains(conditions, scenario.Available):
		return scenario.Available, true
	}
	return "", false
}

// conditionsOf returns the conditions that a step can await for objects of a kind.
func conditionsOf(kind scenario.Kind) []scenario.Until {
	for _, known := range scenario.Kinds() {
		if known.Kind == kind {
			return known.Conditions
		}
	}
	return nil
}

func pauses(step scenario.Step, target scenario.Target) bool {
	switch op := step.Operation.(type) {
	case *scenario.Pause:
		return op.Target == target
	case *scenario.Create:
		return op.Target == target && op.Paused
	}
	return false
}

// Disturbance is a kind of fault that sweep injects at a write.
type Disturbance struct {
	Name        string
	Description string
	// faultAt returns the fault at a write. The write w is the kth of all writes of the
	// subject, counted from 1.
	faultAt func(k int, w Write) (scenario.Fault, error)
}

// Disturbances is the table of disturbances.
var Disturbances = []Disturbance{
	{
		Name:        "crash",
		Description: "the subject is killed after the API server has committed the write and before it receives the response",
		faultAt: func(k int, _ Write) (scenario.Fault, error) {
			fault, err := newFault("crash", &processes.CrashParams{Downtime: downtime})
			fault.When = &scenario.Trigger{Request: &scenario.RequestTrigger{Verb: scenario.AnyWrite, Phase: scenario.Committed, Nth: k}}
			fault.For = downtime
			return fault, err
		},
	},
	{
		Name:        "lost",
		Description: "the API server commits the write and the response is lost",
		faultAt: func(_ int, w Write) (scenario.Fault, error) {
			return newFault("response-lost", &requests.LostParams{
				Match: requests.Match{Verb: w.Verb, Resource: w.Resource, Subresource: w.Subresource, Nth: &w.Nth},
				How:   "reset", Breaks: "request",
			})
		},
	},
}

// downtime is the time from the crash of the subject to its restart.
const downtime = 200 * time.Millisecond

func newFault(name string, params any) (scenario.Fault, error) {
	p, err := scenario.MakeParams(name, params)
	return scenario.Fault{Name: name, Params: p}, err
}

// At returns a copy of a scenario with the disturbance as its only fault. The disturbance
// acts at the write, which is the kth of all writes of the subject, counted from 1.
func (m Disturbance) At(calm *scenario.Scenario, k int, write Write) (*scenario.Scenario, error) {
	s := calm.Clone()
	fault, err := m.faultAt(k, write)
	if err != nil {
		return nil, err
	}
	s.Name = fmt.Sprintf("%.40s-%s-%d", s.Name, m.Name, k)
	s.Description = fmt.Sprintf("%.600s At write %d, the %s, %s.", s.Description, k, write, m.Description)
	s.Faults = []scenario.Fault{fault}
	_, err = s.Marshal() // Marshal validates the scenario
	return s, err
}

// Find returns the disturbance with a name. Its error lists all disturbances.
func Find(name string) (Disturbance, error) {
	var names []string
	for _, m := range Disturbances {
		if m.Name == name {
			return m, nil
		}
		names = append(names, m.Name)
	}
	return Disturbance{}, fmt.Errorf("found disturbance %q; expected %s", name, strings.Join(names, " or "))
}
