package scenario

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Trigger is the condition on which a fault begins or ends. It has exactly one of the
// fields request, event, state, fault and step, and optionally after.
type Trigger struct {
	// Request waits for a request of the subject.
	Request *RequestTrigger `yaml:"request,omitempty"`
	// Event waits for a watch event that is delivered to the subject.
	Event *EventTrigger `yaml:"event,omitempty"`
	// State waits until a number of objects have a state.
	State *StateTrigger `yaml:"state,omitempty"`
	// Fault waits for another fault of the scenario.
	Fault *FaultTrigger `yaml:"fault,omitempty"`
	// Step waits for a step of the workload.
	Step *StepTrigger `yaml:"step,omitempty"`
	// After is a trigger that must match first. Requests, events and states before its match
	// do not count. At most five triggers may follow one another.
	After *Trigger `yaml:"after,omitempty"`
}

// RequestTrigger matches the nth request of the subject that has all the given
// properties.
type RequestTrigger struct {
	// Verb is the verb of the request. "write" matches every verb that changes an
	// object, except on leases and events.
	Verb string `yaml:"verb" enum:"requestVerbs"`
	// Resource is the resource of the request; by default any resource. It may also be the
	// resource of another kind that the workload creates.
	Resource string `yaml:"resource,omitempty" enum:"resources"`
	// Subresource is the subresource of the request, such as status. By default the
	// verb write matches any subresource, and other verbs match none.
	Subresource string `yaml:"subresource,omitempty"`
	// Name is a glob for the name of the object; by default any name.
	Name string `yaml:"name,omitempty" format:"glob"`
	// Owner is a pair of globs for the kind and the name of the owner, such as
	// ReplicaSet/web-*. By default the object has any owner or none.
	Owner string `yaml:"owner,omitempty" format:"ownerGlob"`
	// Phase is the phase of the request in which the trigger matches.
	Phase Phase `yaml:"phase"`
	// Nth counts matching requests from 1.
	Nth int `yaml:"nth" bounds:"1..1000000"`
}

// AnyWrite matches every verb with which the subject changes objects. Requests for leases
// and events do not count.
const AnyWrite = "write"

// Phase is a phase of a request.
type Phase string

// The phases of a request.
const (
	Sent      Phase = "sent"      // The proxy has received the request; the API server has not.
	Committed Phase = "committed" // The API server has committed the request; the subject has not received the response.
)

// EventTrigger matches the nth watch event that has all the given properties,
// before the subject receives it.
type EventTrigger struct {
	// Resource is the resource of the watch. It may also be the resource of another kind
	// that the workload creates.
	Resource string `yaml:"resource" enum:"resources" required:"true"`
	// Type is the type of the event; by default any type.
	Type string `yaml:"type,omitempty" enum:"eventTypes"`
	// Name is a glob for the name of the object; by default any name.
	Name string `yaml:"name,omitempty" format:"glob"`
	// Owner is a pair of globs for the kind and the name of the owner, such as
	// ReplicaSet/web-*. By default the object has any owner or none.
	Owner string `yaml:"owner,omitempty" format:"ownerGlob"`
	// Nth counts matching events from 1.
	Nth int `yaml:"nth" bounds:"1..1000000"`
}

// StateTrigger matches as soon as the number of objects with a state is within bounds. It
// uses the committed state, not the subject's cache.
type StateTrigger struct {
	// Resource is the resource of the objects. It may also be a resource of another kind
	// that the workload creates, or that the controllers under test read or write.
	Resource string `yaml:"resource" enum:"stateResources" required:"true"`
	// Name is a glob for the names of the objects; by default any name.
	Name string `yaml:"name,omitempty" format:"glob"`
	// Owner is a pair of globs for the kind and the name of the owner, such as
	// ReplicaSet/web-*. By default the objects have any owner or none.
	Owner string `yaml:"owner,omitempty" format:"ownerGlob"`
	// Is is the state of the objects. Each resource has its own states.
	Is ObjectState `yaml:"is"`
	// AtLeast is the minimum number of objects with the state. 0 is valid only
	// together with atMost.
	AtLeast int `yaml:"atLeast" bounds:"0..20000"`
	// AtMost is the maximum number of objects with the state; by default any number.
	AtMost *int `yaml:"atMost,omitempty" bounds:"0..20000"`
}

// ObjectState is a state of an object.
type ObjectState string

// The states.
const (
	Present     ObjectState = "present"     // The object exists.
	Terminating ObjectState = "terminating" // The object has a deletionTimestamp.
	PodReady    ObjectState = "ready"       // The pod has the condition Ready and is not terminating.
	PodPending  ObjectState = "pending"     // The pod has the phase Pending.
	PodFailed   ObjectState = "failed"      // The pod has the phase Failed.
	Progressing ObjectState = "progressing" // The Deployment is not complete.
	Completed   ObjectState = "complete"    // Every replica of the Deployment has the latest template and is available.
)

// states has the states of each resource that every run observes.
var states = map[string][]ObjectState{
	"pods":                   {Present, Terminating, PodReady, PodPending, PodFailed},
	"replicasets.apps":       {Present, Terminating},
	"replicationcontrollers": {Present, Terminating},
	"deployments.apps":       {Present, Terminating, Progressing, Completed},
	"services":               {Present, Terminating},
	"endpoints":              {Present, Terminating},
}

// generalStates are the states of the objects of any other resource.
var generalStates = []ObjectState{Present, Terminating}

// statesOf returns the states of a resource that the run observes.
func statesOf(resource string) []ObjectState {
	if special, ok := states[resource]; ok {
		return special
	}
	return generalStates
}

// stateResources returns the resources of the trigger state: those that the run observes.
func (v *validator) stateResources() []string {
	resources := make([]string, 0, len(v.observed))
	for _, kind := range v.observed {
		resources = append(resources, kind.Resource())
	}
	slices.Sort(resources)
	return resources
}

// FaultTrigger matches when another fault fires for the nth time.
type FaultTrigger struct {
	// Index is the position of the other fault in the scenario, from 0.
	Index int `yaml:"index" bounds:"0..99"`
	// Nth counts the firings of the other fault from 1.
	Nth int `yaml:"nth" bounds:"1..1000000"`
}

// StepTrigger matches when a step of the workload begins or ends.
type StepTrigger struct {
	// Index is the position of the step in the workload, from 0.
	Index int `yaml:"index" bounds:"0..999"`
	// At is the edge of the step at which the trigger matches: its beginning or its end.
	At Edge `yaml:"at"`
}

// Edge is the beginning or the end of a step.
type Edge string

// The edges.
const (
	Begun Edge = "begun" // The user begins the operation.
	Done  Edge = "done"  // The step has ended, including its await.
)

func (r *RequestTrigger) setDefaults() { *r = RequestTrigger{Verb: AnyWrite, Phase: Sent, Nth: 1} }
func (e *EventTrigger) setDefaults()   { *e = EventTrigger{Nth: 1} }
func (t *StateTrigger) setDefaults()   { *t = StateTrigger{Is: Present, AtLeast: 1} }
func (f *FaultTrigger) setDefaults()   { *f = FaultTrigger{Nth: 1} }
func (s *StepTrigger) setDefaults()    { *s = StepTrigger{At: Done} }

// String returns the trigger as text, such as "create 3 of pods is sent".
func (t Trigger) String() string {
	words := ""
	switch {
	case t.Request != nil:
		words = fmt.Sprintf("%s %d%s is %s", t.Request.Verb, t.Request.Nth, of(t.Request.Resource, t.Request.Subresource, t.Request.Name, t.Request.Owner), t.Request.Phase)
	case t.Event != nil:
		words = fmt.Sprintf("%s event %d%s arrives", t.Event.Type, t.Event.Nth, of(t.Event.Resource, "", t.Event.Name, t.Event.Owner))
	case t.State != nil:
		words = fmt.Sprintf("%s%s are %s", t.State.count(), of(t.State.Resource, "", t.State.Name, t.State.Owner), t.State.Is)
	case t.Fault != nil:
		words = fmt.Sprintf("fault %d fires for time %d", t.Fault.Index, t.Fault.Nth)
	case t.Step != nil:
		words = fmt.Sprintf("step %d is %s", t.Step.Index, t.Step.At)
	}
	if t.After != nil {
		words += ", after " + t.After.String()
	}
	return strings.TrimSpace(words)
}

func (t *StateTrigger) count() string {
	switch {
	case t.AtMost == nil:
		return fmt.Sprintf("at least %d", t.AtLeast)
	case *t.AtMost == t.AtLeast:
		return fmt.Sprint(t.AtLeast)
	}
	return fmt.Sprintf("%d to %d", t.AtLeast, *t.AtMost)
}

// of returns the properties that an object must have to match, as text for
// [Trigger.String].
func of(resource, subresource, name, owner string) string {
	words := ""
	if resource != "" {
		words = " of " + resource
	}
	if subresource != "" {
		words += "/" + subresource
	}
	if name != "" {
		words += " " + name
	}
	if owner != "" {
		words += " of " + owner
	}
	return words
}

const afterDepthMax = 5 // maximum number of triggers that follow one another

// trigger checks a trigger of a fault. The index is the position of the fault. The depth is
// the number of triggers so far that follow one another, including this one.
func (v *validator) trigger(path string, t *Trigger, fault, depth int) {
	if t == nil {
		return
	}
	set := 0
	for _, given := range []bool{t.Request != nil, t.Event != nil, t.State != nil, t.Fault != nil, t.Step != nil} {
		if given {
			set++
		}
	}
	v.check(set == 1, path, "found %d triggers; expected one of request, event, state, fault, step", set)
	switch {
	case t.Request != nil:
		v.requestTrigger(path+".request", t.Request)
	case t.Event != nil:
		v.eventTrigger(path+".event", t.Event)
	case t.State != nil:
		v.stateTrigger(path+".state", t.State)
	case t.Fault != nil:
		v.number(path+".fault.index", t.Fault.Index, 0, len(v.scenario.Faults)-1)
		v.check(t.Fault.Index != fault, path+".fault.index", "found the fault itself; expected another one")
		v.bounded(path+".fault", t.Fault)
	case t.Step != nil:
		v.check(v.scenario.ExternalWorkload == nil, path+".step", "found a trigger on a step; expected another trigger, because an external workload has no steps")
		v.number(path+".step.index", t.Step.Index, 0, len(v.scenario.Workload)-1)
		oneOf(v, path+".step.at", t.Step.At, Begun, Done)
	}
	v.check(depth <= afterDepthMax, path, "found more than %d triggers one after another; expected at most %d", afterDepthMax, afterDepthMax)
	if v.err == nil {
		v.trigger(path+".after", t.After, fault, depth+1)
	}
}

func (v *validator) requestTrigger(path string, r *RequestTrigger) {
	oneOf(v, path+".verb", r.Verb, enums["requestVerbs"]...)
	if r.Resource != "" {
		oneOf(v, path+".resource", r.Resource, v.resources...)
	}
	v.globs(path, r.Name, r.Owner)
	oneOf(v, path+".phase", r.Phase, Sent, Committed)
	v.bounded(path, r)
}

func (v *validator) eventTrigger(path string, e *EventTrigger) {
	oneOf(v, path+".resource", e.Resource, v.resources...)
	if e.Type != "" {
		oneOf(v, path+".type", e.Type, enums["eventTypes"]...)
	}
	v.globs(path, e.Name, e.Owner)
	v.bounded(path, e)
}

func (v *validator) stateTrigger(path string, t *StateTrigger) {
	oneOf(v, path+".resource", t.Resource, v.stateResources()...)
	if v.err != nil {
		return
	}
	oneOf(v, path+".is", t.Is, statesOf(t.Resource)...)
	v.globs(path, t.Name, t.Owner)
	v.bounded(path, t)
	if t.AtMost != nil {
		v.number(path+".atMost", *t.AtMost, t.AtLeast, replicasMax)
	} else {
		v.check(t.AtLeast > 0, path+".atLeast", "found 0 without atMost, which always matches; expected 1 or more")
	}
}

// globs checks the globs for the name of an object and for its owner.
func (v *validator) globs(at, name, owner string) {
	_, err := path.Match(name, "")
	v.check(err == nil, at+".name", "bad glob %q; expected a name with *, ? and [a-z] in it", name)
	_, err = path.Match(owner, "")
	v.check(err == nil, at+".owner", "bad glob %q; expected a name with *, ? and [a-z] in it", owner)
	v.check(owner == "" || strings.Count(owner, "/") == 1, at+".owner",
		"found %q; expected a kind and a name, such as ReplicaSet/web-*", owner)
}
