package generate

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// Bounds of how long a fault acts. Who has backed off for so long takes as long
// again.
const (
	spanMin = 500 * time.Millisecond
	spanMax = 3 * time.Second
	tick    = 100 * time.Millisecond
	// refusalMax bounds those that refuse whatever is tried: a key that fails is tried
	// again not only when its back-off is over but with every event, and backs off
	// twice as long each time.
	refusalMax = time.Second
)

// faultsMax is how many faults there are in a scenario of any length.
const faultsMax = 100

// triesMax is how often a fault is drawn anew that does not fit.
const triesMax = 200

// addFaults draws what goes wrong while the users work. The first fault begins
// with them and spoils what every workload brings about, so that something does
// go wrong.
func (o *Options) addFaults(s *scenario.Scenario, u *users) error {
	r := o.random("faults")
	occasion := occasionOf(u.steps)
	count := int64(o.Profile.faults.draw(r)) * int64(o.Duration) / int64(o.Profile.duration)
	count = min(max(count, 1), faultsMax)
	for i := range count {
		var from time.Duration
		on := sure
		if i > 0 {
			on = occasion
			from = faults.PickTime(r, 0, o.Duration*3/5, tick)
		}
		on.Span = faults.PickTime(r, spanMin, max(spanMin, min(spanMax, o.Duration-from)), tick)
		fault, err := o.drawFault(r, on, s)
		if err != nil {
			return err
		}
		if fault.From, fault.For = from, on.Span; fault.When != nil { // it comes with what users do
			fault.From, fault.For = 0, spanMax
		}
		if refusesAll(fault) {
			fault.For = min(fault.For, refusalMax)
		}
		s.Faults = append(s.Faults, fault)
	}
	slices.SortStableFunc(s.Faults, func(a, b scenario.Fault) int { return cmp.Compare(a.From, b.From) })
	return nil
}

// leanTries is how many faults are drawn where one is to be had that was seen little.
const leanTries = 6

// drawFault draws a fault that fits; where there is a coverage to lean away from,
// the one of some that was seen least, the first of equals.
func (o *Options) drawFault(r *rand.Rand, on faults.SampleInput, s *scenario.Scenario) (scenario.Fault, error) {
	best, err := o.drawFitting(r, on, s)
	if o.PreferUncovered == nil || err != nil {
		return best, err
	}
	for range leanTries - 1 {
		other, err := o.drawFitting(r, on, s)
		if err != nil {
			return scenario.Fault{}, err
		}
		if o.seen(other) < o.seen(best) {
			best = other
		}
	}
	return best, nil
}

// seen is how often what a fault does was seen.
func (o *Options) seen(fault scenario.Fault) int {
	resource := fault.Params.Text("resource")
	if subresource := fault.Params.Text("subresource"); subresource != "" {
		resource += "/" + subresource
	}
	return o.PreferUncovered.Seen(fault.Name, fault.Params.Text("verb"), resource)
}

// drawFitting draws a fault that can happen where the scenario runs, and beside
// which what there is already does not go beyond upstream.
func (o *Options) drawFitting(r *rand.Rand, on faults.SampleInput, s *scenario.Scenario) (scenario.Fault, error) {
	editor := newEditor(r, s)
	for range triesMax {
		kind := faults.Pick(r, o.Kinds...)
		var when *scenario.Trigger // only what other users do has one
		on.Edit = func() (steps []scenario.Step) {
			steps, when = editor.draw()
			return steps
		}
		drawn := kind.Sample(r, on)
		if drawn == nil {
			continue
		}
		params, err := scenario.MakeParams(kind.Name, drawn)
		if err != nil {
			return scenario.Fault{}, err
		}
		made, err := kind.New(params)
		if err != nil {
			return scenario.Fault{}, fmt.Errorf("what %s draws for itself is wrong: %w", kind.Name, err)
		}
		if picky, ok := made.(faults.ProviderLimited); ok && picky.UnsupportedOn(o.Provider) != nil {
			continue
		}
		fault := scenario.Fault{Name: kind.Name, Params: params, When: when}
		all := append(slices.Clip(s.Faults), fault)
		if steps := withEdits(s.Workload, all); !beyondUpstream(steps, all) && !refusesUsers(steps, all) && !runsOutOfNodes(all) {
			return fault, nil
		}
	}
	return scenario.Fault{}, errors.New("no kind of fault fits")
}

// sure is what every workload brings about.
var sure = faults.SampleInput{
	Requests:  []faults.Request{{Verb: "create", Resource: "pods"}},
	Resources: []string{"pods"},
}

// causes are what the objects of each kind have a subject do and learn of.
var causes = map[scenario.Kind]faults.SampleInput{
	scenario.ReplicaSet: {
		Requests: []faults.Request{
			{Verb: "create", Resource: "pods"}, {Verb: "delete", Resource: "pods"},
			{Verb: "update", Resource: "replicasets.apps", Subresource: "status"},
		},
		Resources: []string{"pods", "replicasets.apps"},
	},
	scenario.ReplicationController: {
		Requests: []faults.Request{
			{Verb: "create", Resource: "pods"}, {Verb: "delete", Resource: "pods"},
			{Verb: "update", Resource: "replicationcontrollers", Subresource: "status"},
		},
		Resources: []string{"pods", "replicationcontrollers"},
	},
	scenario.Deployment: {
		Requests: []faults.Request{
			{Verb: "create", Resource: "replicasets.apps"}, {Verb: "update", Resource: "replicasets.apps"},
			{Verb: "update", Resource: "deployments.apps"}, {Verb: "update", Resource: "deployments.apps", Subresource: "status"},
			{Verb: "create", Resource: "pods"}, {Verb: "delete", Resource: "pods"},
		},
		Resources: []string{"deployments.apps", "replicasets.apps", "pods"},
	},
	scenario.Service: {
		Requests:  []faults.Request{{Verb: "create", Resource: "endpoints"}, {Verb: "update", Resource: "endpoints"}},
		Resources: []string{"services", "endpoints"},
	},
	scenario.Pod: {
		Requests: []faults.Request{{Verb: "patch", Resource: "pods"}},
	},
}

// occasionOf gathers what the workload brings about, each thing once.
func occasionOf(steps []scenario.Step) faults.SampleInput {
	var all faults.SampleInput
	for _, step := range steps {
		create, ok := step.Operation.(*scenario.Create)
		if !ok {
			continue
		}
		cause := causes[create.Kind]
		all.Requests = appendNew(all.Requests, cause.Requests...)
		all.Resources = appendNew(all.Resources, cause.Resources...)
	}
	return all
}

func appendNew[T comparable](all []T, more ...T) []T {
	for _, one := range more {
		if !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return all
}
