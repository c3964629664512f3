package generate

import (
	"errors"
	"slices"
	"time"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/faults/admission"
	"github.com/kube-gauntlet/gauntlet/faults/nodes"
	podfaults "github.com/kube-gauntlet/gauntlet/faults/pods"
	"github.com/kube-gauntlet/gauntlet/faults/processes"
	"github.com/kube-gauntlet/gauntlet/faults/requests"
	"github.com/kube-gauntlet/gauntlet/faults/watches"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// userSequence is a series of steps with faults that begin at these steps. Independent draws of
// steps and faults rarely give such a combination, and some bugs appear in no other.
type userSequence struct {
	weight int // the relative probability of the sequence
	// kinds has the fault types that the sequence injects. The field capabilities has what the
	// cluster must support, so that the sequence can inject these faults with its parameters.
	kinds        []faults.Type
	capabilities []cluster.Capability
	// do appends the steps and faults. It appends nothing if no existing object is suitable.
	do func(*users)
}

// userSequences has all sequences. Most generated scenarios have three or four of them. A scenario
// that is longer than the profile's own duration has more.
var userSequences = []userSequence{
	{weight: 3, do: (*users).scaleDownUnready, kinds: []faults.Type{podfaults.Churn}, capabilities: []cluster.Capability{cluster.ControlsContainers}},
	{weight: 2, do: (*users).scaleDownCheap},
	{weight: 1, do: (*users).scaleDownPending, kinds: []faults.Type{nodes.Cordon}},
	{weight: 2, do: (*users).scaleDownSlowly, kinds: []faults.Type{watches.Delay, requests.Slow, podfaults.Churn}, capabilities: []cluster.Capability{cluster.ControlsContainers}},
	{weight: 2, do: (*users).scaleDownDeletedPods, kinds: []faults.Type{watches.Delay, podfaults.Churn}},
	{weight: 1, do: (*users).rollOutFailed, kinds: []faults.Type{podfaults.Churn}},
	{weight: 2, do: (*users).rollOutUnready, kinds: []faults.Type{podfaults.Churn}, capabilities: []cluster.Capability{cluster.ControlsContainers}},
	{weight: 2, do: (*users).stall, kinds: []faults.Type{requests.Error}},
	{weight: 2, do: (*users).rejectAll, kinds: []faults.Type{requests.Error}},
	{weight: 3, do: (*users).restartSlowly, kinds: []faults.Type{processes.Restart, requests.Slow}},
	{weight: 2, do: (*users).orphanEndpoints, kinds: []faults.Type{processes.Restart}},
	{weight: 2, do: (*users).replaceUnseen, kinds: []faults.Type{watches.Delay}},
	{weight: 1, do: (*users).deleteSlowly},
	{weight: 2, do: (*users).deleteEndpoints},
	{weight: 1, do: (*users).annotateDeployment},
	{weight: 1, do: (*users).flapUnseen, kinds: []faults.Type{watches.Delay, podfaults.Churn}, capabilities: []cluster.Capability{cluster.ControlsContainers}},
	{weight: 1, do: (*users).touchUnready, kinds: []faults.Type{podfaults.Churn}, capabilities: []cluster.Capability{cluster.ControlsContainers}},
	{weight: 2, do: (*users).rollBackUnseen, kinds: []faults.Type{watches.Delay, podfaults.Churn}},
	{weight: 1, do: (*users).rollOutNameTaken, kinds: []faults.Type{admission.Name}},
	{weight: 2, do: (*users).rollOutUnanswered, kinds: []faults.Type{watches.Delay, requests.Lost}},
}

// sequences returns the sequences whose faults the generator may inject on the provider.
func (o *Options) sequences() []userSequence {
	return slices.DeleteFunc(slices.Clone(userSequences), func(s userSequence) bool { return !o.permits(s.capabilities, s.kinds...) })
}

// permits reports whether the provider has the capabilities, and the options permit all of the
// given fault types.
func (o *Options) permits(capabilities []cluster.Capability, kinds ...faults.Type) bool {
	return o.Provider.Capabilities.Has(capabilities...) && !slices.ContainsFunc(kinds, func(kind faults.Type) bool {
		return !slices.ContainsFunc(o.supported, func(drawn faults.Type) bool { return drawn.Name == kind.Name })
	})
}

// sequence draws one of the sequences and appends its steps and faults. It appends nothing if no
// sequence is possible, or if the sequences so far already have half of the faults that a scenario
// may have.
func (u *users) sequence() {
	if len(u.faults) >= faultsMax/2 {
		return
	}
	left := slices.Clone(u.sequences)
	for before := len(u.steps); len(left) > 0 && len(u.steps) == before; {
		i := weighted(u.Rand, left, func(s userSequence) int { return s.weight })
		left[i].do(u)
		left = slices.Delete(left, i, i+1)
	}
}

// inject adds a fault that begins at the last step of the workload. The argument at says whether
// the fault begins at the beginning or at the end of this step. The fault is healed after the given
// duration. The argument params is a YAML mapping with the fault's parameters. inject returns a
// pointer to the fault, which is valid until the next call.
func (u *users) inject(name string, at scenario.Edge, duration time.Duration, params string) *scenario.Fault {
	parsed, err := scenario.ParseParams(name, name, []byte(params))
	u.err = errors.Join(u.err, err)
	u.faults = append(u.faults, scenario.Fault{
		Name: name, Params: parsed, For: duration,
		When: &scenario.Trigger{Step: &scenario.StepTrigger{Index: len(u.steps) - 1, At: at}},
	})
	return &u.faults[len(u.faults)-1]
}

// untilAvailable appends a step that waits until all replicas of an object are available. For a
// Deployment, which must not be paused, it waits until the rollout is complete.
func (u *users) untilAvailable(o *object) {
	u.enqueue(o)
	if deployment(o) {
		u.awaitAfterLast(o, scenario.Complete)
	} else {
		u.awaitAfterLast(o, scenario.Available)
	}
}

// awaitAfterLast lets the last step wait for a condition of an object. In a workload of hours, the
// step does not wait, because faults can delay the condition for longer than a wait may last.
func (u *users) awaitAfterLast(o *object, until scenario.Until) {
	if !u.profile.long {
		u.steps[len(u.steps)-1].Await = &scenario.Await{Target: o.Target, Until: until, Within: time.Minute} // a back-off may be long
	}
}

// active reports whether an object has pods that its controller changes: it has replicas, and is not
// paused.
func active(o *object) bool { return owner(o) && !o.paused && o.replicas > 0 }
