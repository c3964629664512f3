package scenario

import (
	"fmt"
	"path"
	"strings"
)

// Trigger is what a fault waits for: the one of its fields beside After that is
// set, and, if After is, that one first. What was before After came does not
// count.
type Trigger struct {
	Request *RequestTrigger `yaml:"request,omitempty"`
	Event   *EventTrigger   `yaml:"event,omitempty"`
	State   *StateTrigger   `yaml:"state,omitempty"`
	Fault   *FaultTrigger   `yaml:"fault,omitempty"`
	Step    *StepTrigger    `yaml:"step,omitempty"`
	After   *Trigger        `yaml:"after,omitempty"`
}

// RequestTrigger is the subject's nth request of a kind.
type RequestTrigger struct {
	// Verb is one of [Verbs], or AnyWrite.
	Verb string `yaml:"verb"`
	// Resource is one of [Resources]; "" is any.
	Resource    string `yaml:"resource,omitempty"`
	Subresource string `yaml:"subresource,omitempty"` // "" is none, of a write any
	Name        string `yaml:"name,omitempty"`        // a glob
	Owner       string `yaml:"owner,omitempty"`       // globs of kind and name, such as ReplicaSet/web-*
	Phase       Phase  `yaml:"phase"`
	Nth         int    `yaml:"nth"` // from 1
}

// AnyWrite stands for every verb by which the subject changes what it manages;
// leases and events are not counted.
const AnyWrite = "write"

// Phase is a moment in the life of a request.
type Phase string

// The phases of a request.
const (
	Sent      Phase = "sent"      // before it reaches the API server
	Committed Phase = "committed" // the API server has done it, and the subject is not yet told
)

// EventTrigger is the nth watch event of a kind, before it is handed to the subject.
type EventTrigger struct {
	Resource string `yaml:"resource"` // one of [Resources]
	// Type is ADDED, MODIFIED or DELETED; "" is any of them.
	Type  string `yaml:"type,omitempty"`
	Name  string `yaml:"name,omitempty"`  // a glob
	Owner string `yaml:"owner,omitempty"` // as of a RequestMoment
	Nth   int    `yaml:"nth"`             // from 1
}

// StateTrigger is when so many objects of a kind are in a state, whatever the
// subject knows of it, and fewer or more were before.
type StateTrigger struct {
	Resource string      `yaml:"resource"` // one of those with states
	Name     string      `yaml:"name,omitempty"`
	Owner    string      `yaml:"owner,omitempty"`
	Is       ObjectState `yaml:"is"`
	AtLeast  int         `yaml:"atLeast"`
	AtMost   *int        `yaml:"atMost,omitempty"` // nil is any number
}

// ObjectState is a state of an object.
type ObjectState string

// The states.
const (
	Present     ObjectState = "present" // it exists
	Terminating ObjectState = "terminating"
	PodReady    ObjectState = "ready"
	PodPending  ObjectState = "pending"
	PodFailed   ObjectState = "failed"
	Progressing ObjectState = "progressing" // of a Deployment: not complete
	Completed   ObjectState = "complete"    // every replica is of the latest template and available
)

// states are those of the objects that a run observes.
var states = map[string][]ObjectState{
	"pods":                   {Present, Terminating, PodReady, PodPending, PodFailed},
	"replicasets.apps":       {Present, Terminating},
	"replicationcontrollers": {Present, Terminating},
	"deployments.apps":       {Present, Terminating, Progressing, Completed},
	"services":               {Present, Terminating},
	"endpoints":              {Present, Terminating},
}

// FaultTrigger is the nth time that another fault does something.
type FaultTrigger struct {
	Index int `yaml:"index"` // its place in the scenario, from 0
	Nth   int `yaml:"nth"`
}

// StepTrigger is the beginning or the end of a step of the workload.
type StepTrigger struct {
	Index int  `yaml:"index"` // its place in the scenario, from 0
	At    Edge `yaml:"at"`
}

// Edge is one of the two ends of a step.
type Edge string

// The edges.
const (
	Begun Edge = "begun"
	Done  Edge = "done"
)

func (r *RequestTrigger) setDefaults() { *r = RequestTrigger{Verb: AnyWrite, Phase: Sent, Nth: 1} }
func (e *EventTrigger) setDefaults()   { *e = EventTrigger{Nth: 1} }
func (t *StateTrigger) setDefaults()   { *t = StateTrigger{Is: Present, AtLeast: 1} }
func (f *FaultTrigger) setDefaults()   { *f = FaultTrigger{Nth: 1} }
func (s *StepTrigger) setDefaults()    { *s = StepTrigger{At: Done} }

// String is the moment in words, such as "create 3 of pods is sent".
func (m Trigger) String() string {
	words := ""
	switch {
	case m.Request != nil:
		words = fmt.Sprintf("%s %d%s is %s", m.Request.Verb, m.Request.Nth, of(m.Request.Resource, m.Request.Subresource, m.Request.Name, m.Request.Owner), m.Request.Phase)
	case m.Event != nil:
		words = fmt.Sprintf("%s event %d%s arrives", m.Event.Type, m.Event.Nth, of(m.Event.Resource, "", m.Event.Name, m.Event.Owner))
	case m.State != nil:
		words = fmt.Sprintf("%s%s are %s", m.State.count(), of(m.State.Resource, "", m.State.Name, m.State.Owner), m.State.Is)
	case m.Fault != nil:
		words = fmt.Sprintf("fault %d fires for time %d", m.Fault.Index, m.Fault.Nth)
	case m.Step != nil:
		words = fmt.Sprintf("step %d is %s", m.Step.Index, m.Step.At)
	}
	if m.After != nil {
		words += ", after " + m.After.String()
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

// of says in words what objects are meant.
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

const (
	nthMax    = 1_000_000
	afterDeep = 5 // how many moments may follow one another
)

// moment checks what the fault at a place in the scenario waits for.
func (v *validator) moment(path string, m *Trigger, fault, deep int) {
	if m == nil {
		return
	}
	set := 0
	for _, given := range []bool{m.Request != nil, m.Event != nil, m.State != nil, m.Fault != nil, m.Step != nil} {
		if given {
			set++
		}
	}
	v.check(set == 1, path, "found %d moments; expected one of request, event, state, fault, step", set)
	switch {
	case m.Request != nil:
		v.requestMoment(path+".request", m.Request)
	case m.Event != nil:
		v.eventMoment(path+".event", m.Event)
	case m.State != nil:
		v.truthMoment(path+".state", m.State)
	case m.Fault != nil:
		v.number(path+".fault.index", m.Fault.Index, 0, len(v.scenario.Faults)-1)
		v.check(m.Fault.Index != fault, path+".fault.index", "found the fault itself; expected another one")
		v.number(path+".fault.nth", m.Fault.Nth, 1, nthMax)
	case m.Step != nil:
		v.number(path+".step.index", m.Step.Index, 0, len(v.scenario.Workload)-1)
		oneOf(v, path+".step.at", m.Step.At, Begun, Done)
	}
	v.check(deep <= afterDeep, path, "found more than %d moments one after another", afterDeep)
	if v.err == nil {
		v.moment(path+".after", m.After, fault, deep+1)
	}
}

func (v *validator) requestMoment(path string, r *RequestTrigger) {
	oneOf(v, path+".verb", r.Verb, append([]string{AnyWrite}, Verbs...)...)
	if r.Resource != "" {
		oneOf(v, path+".resource", r.Resource, Resources...)
	}
	v.globs(path, r.Name, r.Owner)
	oneOf(v, path+".phase", r.Phase, Sent, Committed)
	v.number(path+".nth", r.Nth, 1, nthMax)
}

func (v *validator) eventMoment(path string, e *EventTrigger) {
	oneOf(v, path+".resource", e.Resource, Resources...)
	if e.Type != "" {
		oneOf(v, path+".type", e.Type, "ADDED", "MODIFIED", "DELETED")
	}
	v.globs(path, e.Name, e.Owner)
	v.number(path+".nth", e.Nth, 1, nthMax)
}

func (v *validator) truthMoment(path string, t *StateTrigger) {
	oneOf(v, path+".resource", t.Resource, sortedKeys(states)...)
	if v.err != nil {
		return
	}
	oneOf(v, path+".is", t.Is, states[t.Resource]...)
	v.globs(path, t.Name, t.Owner)
	v.number(path+".atLeast", t.AtLeast, 0, replicasMax)
	if t.AtMost != nil {
		v.number(path+".atMost", *t.AtMost, t.AtLeast, replicasMax)
	} else {
		v.check(t.AtLeast > 0, path+".atLeast", "found 0 without atMost, which is always so; expected 1 or more")
	}
}

// globs checks the globs of a name and of an owner.
func (v *validator) globs(at, name, owner string) {
	_, err := path.Match(name, "")
	v.check(err == nil, at+".name", "bad glob %q; expected a name with *, ? and [a-z] in it", name)
	_, err = path.Match(owner, "")
	v.check(err == nil, at+".owner", "bad glob %q; expected a name with *, ? and [a-z] in it", owner)
	v.check(owner == "" || strings.Count(owner, "/") == 1, at+".owner",
		"found %q; expected a kind and a name, such as ReplicaSet/web-*", owner)
}
