// Package sweep plans runs of a scenario with one fault at exactly one write of the subject.
// There is one run for each write. The package reads the writes from a history and returns
// scenarios. It does not run them.
package sweep

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/kube-gauntlet/gauntlet/faults/processes"
	"github.com/kube-gauntlet/gauntlet/faults/requests"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/nearest"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// Write identifies one write of the subject in a run. It is the Nth write with this verb,
// resource and subresource, counted from 1.
type Write struct {
	Verb, Resource, Subresource string
	Nth                         int
}

// String returns a description of the write, such as "create of pods number 3".
func (w Write) String() string {
	resource := w.Resource
	if w.Subresource != "" {
		resource += "/" + w.Subresource
	}
	return fmt.Sprintf("%s of %s number %d", w.Verb, resource, w.Nth)
}

// Writes returns the writes of the subject in a history, in the order of their requests. It leaves
// out leases, events and access reviews; see [history.Request.IsWrite].
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

// WithoutFaults returns a copy of the scenario without faults, to which the sweep later adds
// one fault at one write.
//
// Faults begin only during the workload, so the workload must last until the last write.
// WithoutFaults therefore adds steps at its end, which wait until all objects have settled.
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

// settled returns the condition that shows that an object has settled.
//
//   - This is complete, if the kind has this condition and no step pauses the object.
//   - Otherwise it is available, if the kind has that.
//   - For a kind with neither, settled returns false, and the workload of the scenario must
//     itself await the object.
func settled(s *scenario.Scenario, target scenario.Target) (scenario.Until, bool) {
	conditions := conditionsOf(target.Kind)
	paused := slices.ContainsFunc(s.Workload, func(step scenario.Step) bool { return pauses(step, target) })
	switch {
	case slices.Contains(conditions, scenario.Complete) && !paused:
		// A paused Deployment may never complete the rollout of its last pod template.
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

// pauses reports whether a step pauses the rollout of the target.
func pauses(step scenario.Step, target scenario.Target) bool {
	switch op := step.Operation.(type) {
	case *scenario.Pause:
		return op.Target == target
	case *scenario.Create:
		return op.Target == target && op.Paused
	}
	return false
}

// Disturbance is a fault that `gauntlet sweep crash` injects at one write of the subject.
type Disturbance struct {
	// Name identifies the disturbance in the flag --at.
	Name string
	// Description says what happens at the write. It becomes a part of the description of the
	// scenario.
	Description string
	// faultAt returns the fault for the write w. The index k is the position of w among all
	// writes of the subject, counted from 1.
	faultAt func(k int, w Write) (scenario.Fault, error)
}

// Disturbances are all disturbances that `gauntlet sweep crash` can inject.
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

// newFault returns a fault of the given type with the given parameters.
func newFault(name string, params any) (scenario.Fault, error) {
	p, err := scenario.MakeParams(name, params)
	return scenario.Fault{Name: name, Params: p}, err
}

// At returns a copy of a scenario without faults, with the disturbance as its only fault. The
// disturbance acts at the given write. The index k is the position of this write among all
// writes of the subject, counted from 1.
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

// Find returns the disturbance with the given name. If there is none, the error lists all
// disturbances.
func Find(name string) (Disturbance, error) {
	var names []string
	for _, m := range Disturbances {
		if m.Name == name {
			return m, nil
		}
		names = append(names, m.Name)
	}
	return Disturbance{}, fmt.Errorf("found disturbance %q; expected %s%s", name, nearest.List(names, "or"), nearest.Suggestion(name, names))
}
