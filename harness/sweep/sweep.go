// Package sweep plans series of runs that leave nothing out: a scenario once for
// every write of the subject, with something going wrong at just that one. It
// takes histories and scenarios and gives scenarios; it runs nothing.
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

// Write is a write of the subject, told by its meaning: it is the Nth of its kind,
// counted from 1.
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

// Writes are the writes of the subject in a history, in their order.
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

// restWithin bounds the wait for the workload's end.
const restWithin = time.Minute

// WithoutFaults is a scenario in which nothing goes wrong, and whose workload is not
// over before everything has come to rest: what goes wrong while there is work
// can then go wrong at any of it.
func WithoutFaults(s *scenario.Scenario) *scenario.Scenario {
	calm := s.Clone()
	calm.Faults, calm.Exercises = nil, nil
	for _, target := range calm.ExistingObjects() {
		if until, ok := atRest(calm, target); ok {
			calm.Workload = append(calm.Workload, scenario.Step{
				Await: &scenario.Await{Target: target, Until: until, Within: restWithin},
			})
		}
	}
	return calm
}

// atRest is what is waited for of an object in the end.
func atRest(s *scenario.Scenario, target scenario.Target) (scenario.Until, bool) {
	switch target.Kind {
	case scenario.ReplicaSet, scenario.ReplicationController:
		return scenario.Available, true
	case scenario.Deployment:
		if slices.ContainsFunc(s.Workload, func(step scenario.Step) bool { return pauses(step, target) }) {
			return scenario.Available, true // what it has been given last may have to wait
		}
		return scenario.Complete, true
	}
	return "", false
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

// Disturbance is something that can go wrong at a write.
type Disturbance struct {
	Name        string
	Description string
	// fault is what goes wrong at the kth write of all, counted from 1.
	fault func(k int, w Write) (scenario.Fault, error)
}

// Disturbances is the table of all.
var Disturbances = []Disturbance{
	{
		Name:        "crash",
		Description: "the subject is killed before it learns that the write has done its work",
		fault: func(k int, _ Write) (scenario.Fault, error) {
			fault, err := made("crash", &processes.CrashParams{Downtime: downtime})
			fault.When = &scenario.Trigger{Request: &scenario.RequestTrigger{Verb: scenario.AnyWrite, Phase: scenario.Committed, Nth: k}}
			fault.For = downtime
			return fault, err
		},
	},
	{
		Name:        "lost",
		Description: "the write does its work, and the subject is not told",
		fault: func(_ int, w Write) (scenario.Fault, error) {
			return made("response-lost", &requests.LostParams{
				Match: requests.Match{Verb: w.Verb, Resource: w.Resource, Subresource: w.Subresource, Nth: &w.Nth},
				How:   "reset", Breaks: "request",
			})
		},
	},
}

// downtime is for how long a subject is gone that has crashed.
const downtime = 200 * time.Millisecond

func made(name string, params any) (scenario.Fault, error) {
	p, err := scenario.MakeParams(name, params)
	return scenario.Fault{Name: name, Params: p}, err
}

// At is an undisturbed scenario with the mishap at its kth write, counted from 1.
func (m Disturbance) At(calm *scenario.Scenario, k int, write Write) (*scenario.Scenario, error) {
	s := calm.Clone()
	fault, err := m.fault(k, write)
	if err != nil {
		return nil, err
	}
	s.Name = fmt.Sprintf("%.40s-%s-%d", s.Name, m.Name, k)
	s.Description = fmt.Sprintf("%.600s At write %d, the %s, %s.", s.Description, k, write, m.Description)
	s.Faults = []scenario.Fault{fault}
	_, err = s.Marshal() // which refuses what makes no sense
	return s, err
}

// Find returns the mishap of that name. Its error names those that there are.
func Find(name string) (Disturbance, error) {
	var names []string
	for _, m := range Disturbances {
		if m.Name == name {
			return m, nil
		}
		names = append(names, m.Name)
	}
	return Disturbance{}, fmt.Errorf("mishap %q: expected %s", name, strings.Join(names, " or "))
}
