package generate

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/faults/ordering"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// These are the minimum and the maximum duration of a fault.
//
// Faults are short, because failed syncs increase the back-off of a work queue key. After a fault
// of N seconds, the next retry of the key may take another N seconds. With a workload of hours, half of
// the faults last up to longSpanMax. That is longer than 5 minutes, the time after which the
// expectations of kube-controller-manager expire.
const (
	spanMin     = 500 * time.Millisecond
	spanMax     = 3 * time.Second
	longSpanMin = time.Minute
	longSpanMax = 10 * time.Minute
	// timeStep is the unit of random times: every drawn duration or delay of a fault is a
	// multiple of timeStep.
	timeStep = 100 * time.Millisecond
	// rejectionMax is the maximum duration of a fault that rejects all requests. Every watch
	// event causes another sync during such a fault, and each failed sync doubles the back-off
	// of a work queue key. With a workload of hours, rejectionMax does not apply.
	rejectionMax = time.Second
)

// faultsMax is the maximum number of faults in a generated scenario.
const faultsMax = 100

// triesMax is how many faults [Options.drawFitting] draws at most until one fits the scenario.
const triesMax = 200

// addFaults draws the faults of a scenario and adds them to s. Faults of sequences, which s may
// have already, stay. The argument u has drawn the steps of the scenario's workload.
func (o *Options) addFaults(s *scenario.Scenario, u *users) error {
	r := o.random("faults")
	input := sampleInputOf(u.steps)
	o.finishes = u.finishes
	count := int64(o.Profile.faults.draw(r)) * int64(o.Duration) / int64(o.Profile.duration)
	count = min(max(count, 1), faultsMax-int64(len(s.Faults)))
	for range count {
		draw := o.drawTimed
		if o.Profile.long {
			draw = o.drawTriggered
		}
		fault, err := draw(r, input, s)
		if err != nil {
			return err
		}
		s.Faults = append(s.Faults, fault)
	}
	slices.SortStableFunc(s.Faults, func(a, b scenario.Fault) int { return cmp.Compare(a.From, b.From) })
	return nil
}

// randomOrder returns a random-order fault for the whole workload, with a random number of changes of
// priorities.
func (o *Options) randomOrder() (scenario.Fault, error) {
	r := o.random("order of messages")
	params, err := scenario.MakeParams(ordering.Random.Name, &ordering.RandomParams{
		Interval: faults.PickTime(r, time.Millisecond, 10*time.Millisecond, time.Millisecond), Changes: r.IntN(8), Among: 400,
	})
	return scenario.Fault{Name: ordering.Random.Name, Params: params}, err
}

// drawTimed draws a fault that begins at a random time of the workload. The first fault of a
// scenario begins together with the workload. If this first fault acts on requests, it acts on
// creates of pods, because every workload causes such requests.
func (o *Options) drawTimed(r *rand.Rand, input faults.SampleInput, s *scenario.Scenario) (scenario.Fault, error) {
	var from time.Duration
	if timed := func(f scenario.Fault) bool { return f.When == nil }; !slices.ContainsFunc(s.Faults, timed) {
		input = podCreates
	} else {
		from = faults.PickTime(r, 0, o.Duration*3/5, timeStep)
	}
	input.Span = faults.PickTime(r, spanMin, max(spanMin, min(spanMax, o.Duration-from)), timeStep)
	fault, err := o.drawFault(r, input, s)
	if err != nil {
		return fault, err
	}
	if fault.From, fault.For = from, input.Span; fault.When != nil { // a user-edit fault begins on its trigger
		fault.From, fault.For = 0, spanMax
	}
	if rejectsAll(fault) {
		fault.For = min(fault.For, rejectionMax)
	}
	return fault, nil
}

// drawTriggered draws a fault that begins at a step of the workload. A step gives the controllers
// something to do, so that the fault can take effect. Between the steps, there may be nothing to
// affect. Half of these faults begin at the same step as the previous fault, so that both act
// together.
func (o *Options) drawTriggered(r *rand.Rand, input faults.SampleInput, s *scenario.Scenario) (scenario.Fault, error) {
	input.Long = r.IntN(2) == 0
	if input.Span = faults.PickTime(r, spanMin, 30*time.Second, timeStep); input.Long {
		input.Span = faults.PickTime(r, longSpanMin, longSpanMax, time.Second)
	}
	index := r.IntN(len(s.Workload))
	if n := len(s.Faults); n > 0 && r.IntN(2) == 0 {
		index = s.Faults[n-1].When.Step.Index
	}
	fault, err := o.drawFault(r, input, s)
	if err != nil {
		return fault, err
	}
	if fault.For = input.Span; fault.When == nil { // only a user-edit fault has a trigger already
		at := faults.Pick(r, scenario.Begun, scenario.Done)
		fault.When = &scenario.Trigger{Step: &scenario.StepTrigger{Index: index, At: at}}
	}
	return fault, nil
}

// preferTries is how many faults [Options.drawFault] draws to choose one of them. It draws only one
// fault unless Options.PreferUncovered is set.
const preferTries = 6

// drawFault draws a fault that fits the scenario; see [Options.drawFitting].
//
// If Options.PreferUncovered is set, it draws preferTries faults. It then returns the fault that
// fired least often in the earlier runs.
func (o *Options) drawFault(r *rand.Rand, on faults.SampleInput, s *scenario.Scenario) (scenario.Fault, error) {
	best, err := o.drawFitting(r, on, s)
	if o.PreferUncovered == nil || err != nil {
		return best, err
	}
	for range preferTries - 1 {
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

// seen returns how often faults of the same type, verb and resource fired in earlier runs. The
// counts are in the option PreferUncovered, with which the generator prefers rare faults.
func (o *Options) seen(fault scenario.Fault) int {
	resource := fault.Params.Text("resource")
	if subresource := fault.Params.Text("subresource"); subresource != "" {
		resource += "/" + subresource
	}
	return o.PreferUncovered.Seen(fault.Name, fault.Params.Text("verb"), resource)
}

// drawFitting draws a fault that the provider supports and that fits the scenario. A fault fits
// if the scenario stays valid and the fault cannot cause a known upstream issue. If none of
// triesMax draws fits, drawFitting returns an error.
func (o *Options) drawFitting(r *rand.Rand, on faults.SampleInput, s *scenario.Scenario) (scenario.Fault, error) {
	editor := newEditor(r, o.Profile, s, cmp.Or(o.finishes, len(s.Workload)))
	for range triesMax {
		kind := faults.Pick(r, o.Kinds...)
		var when *scenario.Trigger // only user-edit faults have a trigger
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
			return scenario.Fault{}, fmt.Errorf("sampling parameters of fault %s: %w", kind.Name, err)
		}
		if picky, ok := made.(faults.ProviderLimited); ok && picky.Unsupported(o.Provider.Capabilities) != nil {
			continue
		}
		fault := scenario.Fault{Name: kind.Name, Params: params, When: when}
		all := append(slices.Clip(s.Faults), fault)
		if steps := withEdits(s.Workload, all); !o.Profile.triggersUpstreamIssue(all) && !rejectsUserPods(steps, all) && !marksNodesTwice(all) {
			return fault, nil
		}
	}
	return scenario.Fault{}, fmt.Errorf("found no fault that fits the workload in %d draws; expected more types of faults in generate.Options.Kinds", triesMax)
}

// podCreates has the requests and watches on which the first fault of a scenario may act. These
// are creates and watches of pods, because every workload causes them.
var podCreates = faults.SampleInput{
	Requests:  []faults.Request{{Verb: "create", Resource: resource(kube.Pod)}},
	Resources: []string{resource(kube.Pod)},
}

// sampleInputs has, for each kind, the requests and watches that the controllers under test make
// for objects of the kind. From these, the generator draws the parameters of a fault, such as verb
// and resource.
var sampleInputs = map[scenario.Kind]faults.SampleInput{
	scenario.ReplicaSet: {
		Requests: []faults.Request{
			{Verb: "create", Resource: resource(kube.Pod)}, {Verb: "delete", Resource: resource(kube.Pod)},
			{Verb: "update", Resource: resource(kube.ReplicaSet), Subresource: "status"},
		},
		Resources: []string{resource(kube.Pod), resource(kube.ReplicaSet)},
	},
	scenario.ReplicationController: {
		Requests: []faults.Request{
			{Verb: "create", Resource: resource(kube.Pod)}, {Verb: "delete", Resource: resource(kube.Pod)},
			{Verb: "update", Resource: resource(kube.ReplicationController), Subresource: "status"},
		},
		Resources: []string{resource(kube.Pod), resource(kube.ReplicationController)},
	},
	scenario.Deployment: {
		Requests: []faults.Request{
			{Verb: "create", Resource: resource(kube.ReplicaSet)}, {Verb: "update", Resource: resource(kube.ReplicaSet)},
			{Verb: "update", Resource: resource(kube.Deployment)}, {Verb: "update", Resource: resource(kube.Deployment), Subresource: "status"},
			{Verb: "create", Resource: resource(kube.Pod)}, {Verb: "delete", Resource: resource(kube.Pod)},
		},
		Resources: []string{resource(kube.Deployment), resource(kube.ReplicaSet), resource(kube.Pod)},
	},
	scenario.Service: {
		Requests:  []faults.Request{{Verb: "create", Resource: resource(kube.Endpoints)}, {Verb: "update", Resource: resource(kube.Endpoints)}},
		Resources: []string{resource(kube.Service), resource(kube.Endpoints)},
	},
	scenario.Pod: {
		Requests: []faults.Request{{Verb: "patch", Resource: resource(kube.Pod)}},
	},
}

// resource returns the resource of a kind, such as "replicasets.apps". Package kube must know
// the kind.
func resource(kind string) string {
	row, _ := kube.Named(kind)
	return row.Resource()
}

// sampleInputOf returns the requests and watches that the controllers under test make for the
// workload's objects, each once.
func sampleInputOf(steps []scenario.Step) faults.SampleInput {
	var all faults.SampleInput
	for _, step := range steps {
		create, ok := step.Operation.(*scenario.Create)
		if !ok {
			continue
		}
		cause := sampleInputs[create.Kind]
		all.Requests = appendNew(all.Requests, cause.Requests...)
		all.Resources = appendNew(all.Resources, cause.Resources...)
	}
	return all
}

// appendNew returns the list all with more items. It omits items that all already contains.
func appendNew[T comparable](all []T, more ...T) []T {
	for _, one := range more {
		if !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return all
}
