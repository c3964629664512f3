package scenario

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/nearest"
)

// Trigger is the condition on which a fault begins or ends. It has exactly one of the
// fields request, event, state, fault and step, and optionally after.
type Trigger struct {
	// Request waits for a request of the controllers under test.
	Request *RequestTrigger `yaml:"request,omitempty"`
	// Event waits for a watch event that is delivered to the controllers under test.
	Event *EventTrigger `yaml:"event,omitempty"`
	// State waits until a number of objects have a state, such as ready.
	State *StateTrigger `yaml:"state,omitempty"`
	// Fault waits until another fault of the scenario fires, which means that it changes
	// something.
	Fault *FaultTrigger `yaml:"fault,omitempty"`
	// Step waits until a step of the workload begins or ends.
	Step *StepTrigger `yaml:"step,omitempty"`
	// After is another trigger that must match first. This trigger counts only requests, events
	// and states after that match. At most five triggers may be linked by after.
	After *Trigger `yaml:"after,omitempty"`
}

// RequestTrigger matches the nth request of the controllers under test among the requests that have
// all the given properties.
type RequestTrigger struct {
	// Verb is the verb of the request. "write" matches every verb that changes an object, but
	// not requests for leases and events.
	Verb string `yaml:"verb" enum:"requestVerbs"`
	// Resource is the resource of the request, such as pods; by default any resource. It may
	// also be the resource of a kind that the workload creates from a manifest.
	Resource string `yaml:"resource,omitempty" enum:"resources"`
	// Subresource is the subresource of the request, such as status. By default, the verb write
	// matches requests with any subresource or none. By default, any other verb matches only
	// requests without a subresource.
	Subresource string `yaml:"subresource,omitempty"`
	// Name is a glob for the name of the object; by default any name.
	Name string `yaml:"name,omitempty" format:"glob"`
	// Owner is a pair of globs for the kind and the name of the owner, such as
	// ReplicaSet/web-*. By default the object has any owner or none.
	Owner string `yaml:"owner,omitempty" format:"ownerGlob"`
	// Phase says at which point in the life of the request the trigger matches.
	Phase Phase `yaml:"phase"`
	// Nth says which of the matching requests the trigger waits for, counted from 1.
	Nth int `yaml:"nth" bounds:"1..1000000"`
}

// AnyWrite is the value of verb that matches every verb with which the controllers under test
// change objects. It does not match requests for leases and events.
const AnyWrite = "write"

// Phase is a point in the life of a request at which a trigger can match, such as "sent".
type Phase string

// These are the values of [Phase]: before and after the API server has processed the request. A
// trigger of a fault can match at both.
const (
	Sent      Phase = "sent"      // The fault proxy has received the request, and the API server has not.
	Committed Phase = "committed" // The API server has committed the write, and the controllers under test have not received the response.
)

// EventTrigger matches the nth watch event among the events that have all the given properties. The
// trigger matches before the controllers under test receive the event.
type EventTrigger struct {
	// Resource is the resource of the watch, such as pods. It may also be the resource of a kind
	// that the workload creates from a manifest.
	Resource string `yaml:"resource" enum:"resources" required:"true"`
	// Type is the type of the watch event; by default any type.
	Type string `yaml:"type,omitempty" enum:"eventTypes"`
	// Name is a glob for the name of the object; by default any name.
	Name string `yaml:"name,omitempty" format:"glob"`
	// Owner is a pair of globs for the kind and the name of the owner, such as
	// ReplicaSet/web-*. By default the object has any owner or none.
	Owner string `yaml:"owner,omitempty" format:"ownerGlob"`
	// Nth says which of the matching events the trigger waits for, counted from 1.
	Nth int `yaml:"nth" bounds:"1..1000000"`
}

// StateTrigger matches as soon as the number of objects with a state is at least atLeast and at
// most atMost. The trigger counts objects as etcd has committed them, not as the cache of a
// controller has them.
type StateTrigger struct {
	// Resource is the resource of the objects, such as pods. It may also be the resource of a
	// kind that the workload creates from a manifest, or that the controllers under test read or
	// write.
	Resource string `yaml:"resource" enum:"stateResources" required:"true"`
	// Name is a glob for the names of the objects; by default any name.
	Name string `yaml:"name,omitempty" format:"glob"`
	// Owner is a pair of globs for the kind and the name of the owner, such as
	// ReplicaSet/web-*. By default the objects have any owner or none.
	Owner string `yaml:"owner,omitempty" format:"ownerGlob"`
	// Is is the state of the objects to count. The allowed states depend on the resource.
	Is ObjectState `yaml:"is"`
	// AtLeast is the minimum number of objects with the state. 0 is valid only
	// together with atMost.
	AtLeast int `yaml:"atLeast" bounds:"0..20000"`
	// AtMost is the maximum number of objects with the state; by default any number.
	AtMost *int `yaml:"atMost,omitempty" bounds:"0..20000"`
}

// ObjectState is a state of an object that the trigger state can wait for.
type ObjectState string

// These are the object states that a trigger of a fault can wait for.
const (
	Present     ObjectState = "present"     // The object exists.
	Terminating ObjectState = "terminating" // The object has a deletionTimestamp.
	PodReady    ObjectState = "ready"       // The pod has the condition Ready and is not terminating.
	PodPending  ObjectState = "pending"     // The pod has the phase Pending.
	PodFailed   ObjectState = "failed"      // The pod has the phase Failed.
	Progressing ObjectState = "progressing" // The Deployment is not complete.
	Completed   ObjectState = "complete"    // Every replica of the Deployment has the latest template and is available.
)

// generalStates are the states that objects of every kind can have. furtherStates adds states
// for some kinds.
var (
	generalStates = []ObjectState{Present, Terminating}
	furtherStates = map[string][]ObjectState{
		kube.Pod:        {PodReady, PodPending, PodFailed},
		kube.Deployment: {Progressing, Completed},
	}
)

// StatesOf returns the states that a state trigger can wait for. They depend on the resource,
// such as pods.
func StatesOf(resource string) []ObjectState {
	kind, _ := kube.ByResource(resource)
	return slices.Concat(generalStates, furtherStates[kind.Name])
}

// stateResources returns the resources that a state trigger may name. These are the resources
// whose objects the run records.
func (v *validator) stateResources() []string { return resourcesOf(v.observed) }

// FaultTrigger matches when another fault of the scenario fires for the nth time. A fault fires
// each time it changes something, such as when it refuses a request.
type FaultTrigger struct {
	// Index is the position of the other fault in the list of faults, counted from 0.
	Index int `yaml:"index" bounds:"0..99"`
	// Nth is the number of times that the other fault must have fired, at least 1.
	Nth int `yaml:"nth" bounds:"1..1000000"`
}

// StepTrigger matches when a step of the workload begins or ends.
type StepTrigger struct {
	// Index is the position of the step in the workload, counted from 0.
	Index int `yaml:"index" bounds:"0..999"`
	// At says whether the trigger matches at the beginning or at the end of the step.
	At Edge `yaml:"at"`
}

// Edge is the beginning or the end of a step, at which a step trigger can match.
type Edge string

// These are the values of [Edge]: the beginning and the end of a workload step. A trigger of a
// fault can match at both.
const (
	Begun Edge = "begun" // The user begins the operation of the step.
	Done  Edge = "done"  // The operation and the await of the step have ended.
)

func (r *RequestTrigger) setDefaults() { *r = RequestTrigger{Verb: AnyWrite, Phase: Sent, Nth: 1} }
func (e *EventTrigger) setDefaults()   { *e = EventTrigger{Nth: 1} }
func (t *StateTrigger) setDefaults()   { *t = StateTrigger{Is: Present, AtLeast: 1} }
func (f *FaultTrigger) setDefaults()   { *f = FaultTrigger{Nth: 1} }
func (s *StepTrigger) setDefaults()    { *s = StepTrigger{At: Done} }

// String returns the trigger as text for reports, such as "create request number 3 of pods is
// sent".
func (t Trigger) String() string {
	words := ""
	switch {
	case t.Request != nil:
		words = fmt.Sprintf("%s request number %d%s is %s", t.Request.Verb, t.Request.Nth, of(t.Request.Resource, t.Request.Subresource, t.Request.Name, t.Request.Owner), t.Request.Phase)
	case t.Event != nil:
		words = fmt.Sprintf("%s event number %d%s is delivered", cmp.Or(t.Event.Type, "watch"), t.Event.Nth, of(t.Event.Resource, "", t.Event.Name, t.Event.Owner))
	case t.State != nil:
		words = fmt.Sprintf("%s%s are %s", t.State.count(), strings.TrimPrefix(of(t.State.Resource, "", t.State.Name, t.State.Owner), " of"), t.State.Is)
	case t.Fault != nil:
		words = fmt.Sprintf("faults[%d] has fired", t.Fault.Index)
		if t.Fault.Nth > 1 {
			words += fmt.Sprintf(" %d times", t.Fault.Nth)
		}
	case t.Step != nil:
		words = fmt.Sprintf("step %d is %s", t.Step.Index, t.Step.At)
	}
	if t.After != nil {
		words += ", after " + t.After.String()
	}
	return strings.TrimSpace(words)
}

// count returns the allowed number of objects as text, such as "at least 2" or "1 to 3". The text
// of the trigger contains it.
func (t *StateTrigger) count() string {
	switch {
	case t.AtMost == nil:
		return fmt.Sprintf("at least %d", t.AtLeast)
	case *t.AtMost == t.AtLeast:
		return fmt.Sprint(t.AtLeast)
	}
	return fmt.Sprintf("%d to %d", t.AtLeast, *t.AtMost)
}

// of returns a text about the objects that a trigger matches. The text begins with a space, such
// as " of pods of ReplicaSet/web-*". It is "" if all arguments are empty.
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

// afterDepthMax is the maximum length of a chain of triggers. Each trigger of a chain has the
// next one in its field after.
const afterDepthMax = 5

// trigger records errors about the trigger t, and about the chain of triggers in its field after.
// The argument fault is the index of the fault that has the trigger. The argument depth counts
// the triggers of the chain up to t, including t.
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
	v.check(set == 1, path, "found %d of the fields request, event, state, fault and step; expected exactly one", set)
	switch {
	case t.Request != nil:
		v.requestTrigger(path+".request", t.Request)
	case t.Event != nil:
		v.eventTrigger(path+".event", t.Event)
	case t.State != nil:
		v.stateTrigger(path+".state", t.State)
	case t.Fault != nil:
		v.number(path+".fault.index", t.Fault.Index, 0, len(v.scenario.Faults)-1)
		v.check(t.Fault.Index != fault, path+".fault.index", "found the index of the fault itself; expected the index of another fault")
		v.bounded(path+".fault", t.Fault)
	case t.Step != nil:
		v.check(v.scenario.ExternalWorkload == nil || v.invalid("workload"), path+".step", "found a trigger on a step; expected another trigger, because an external workload has no steps")
		if last := len(v.scenario.Workload) - 1; last >= 0 && !v.invalid("workload") { // an invalid step may stand for several
			v.number(path+".step.index", t.Step.Index, 0, last)
		}
		oneOf(v, path+".step.at", t.Step.At, Begun, Done)
	}
	v.check(depth <= afterDepthMax, path, "found more than %d triggers linked by after; expected at most %d", afterDepthMax, afterDepthMax)
	if depth <= afterDepthMax {
		v.trigger(path+".after", t.After, fault, depth+1)
	}
}

// verbsOfMethods has the verbs that users mean by methods of HTTP.
var verbsOfMethods = map[string]string{"POST": "create", "PUT": "update"}

func (v *validator) requestTrigger(path string, r *RequestTrigger) {
	if verb := verbsOfMethods[strings.ToUpper(r.Verb)]; verb != "" && r.Verb != verb {
		v.check(false, path+".verb", "found the method %s; expected a verb; did you mean %s?", r.Verb, verb)
	}
	oneOf(v, path+".verb", r.Verb, enums["requestVerbs"]...)
	if r.Resource != "" {
		v.resource(path+".resource", r.Resource)
	}
	v.globs(path, r.Name, r.Owner)
	oneOf(v, path+".phase", r.Phase, Sent, Committed)
	v.check(r.Phase != Committed || !slices.Contains([]string{"get", "list", "watch"}, r.Verb), path+".phase",
		"found committed with the verb %s, which commits nothing, so the trigger never matches; expected sent, or the verb of a write", r.Verb)
	v.bounded(path, r)
}

func (v *validator) eventTrigger(path string, e *EventTrigger) {
	v.resource(path+".resource", e.Resource)
	if e.Type != "" {
		oneOf(v, path+".type", e.Type, enums["eventTypes"]...)
	}
	v.globs(path, e.Name, e.Owner)
	v.bounded(path, e)
}

func (v *validator) stateTrigger(path string, t *StateTrigger) {
	if recorded := v.stateResources(); !slices.Contains(recorded, t.Resource) {
		if kind, known := kube.ByResource(t.Resource); known {
			v.check(false, path+".resource", "found %s, whose objects the run does not record; expected %s, or a step that creates %s", t.Resource, nearest.List(recorded, "or"), nearest.WithArticle(kind.Name))
		}
		oneOf(v, path+".resource", t.Resource, recorded...)
	}
	if v.invalid(path + ".resource") {
		return
	}
	oneOf(v, path+".is", t.Is, StatesOf(t.Resource)...)
	v.globs(path, t.Name, t.Owner)
	v.bounded(path, t)
	if t.AtMost != nil {
		v.number(path+".atMost", *t.AtMost, t.AtLeast, replicasMax)
	} else {
		v.check(t.AtLeast > 0, path+".atLeast", "found 0 without atMost, so the trigger always matches; expected 1 or more, or the field atMost")
	}
}

// globs records an error if the field name or owner of a trigger is invalid. The name is a glob.
// The owner has the form KIND/NAME, where both parts are globs.
func (v *validator) globs(at, name, owner string) {
	for field, glob := range map[string]string{".name": name, ".owner": owner} {
		if err := CheckGlob(glob); err != nil {
			v.check(false, at+field, "%w", err)
		}
	}
	if err := CheckOwner(owner); err != nil {
		v.check(false, at+".owner", "%w", err)
	}
}

// reversedRange matches a range of characters in a glob, such as [a-z]. The groups are its first and its
// last character.
var reversedRange = regexp.MustCompile(`\[\^?([^]\\])-([^]\\])\]`)

// CheckGlob returns an error if a glob for names of objects is invalid, or can match no name.
func CheckGlob(glob string) error {
	if _, err := path.Match(glob, ""); err != nil {
		return fmt.Errorf("found %q, which is not a valid glob; expected each [ to be closed, such as web-[a-c]*", glob)
	}
	if strings.ContainsFunc(glob, func(c rune) bool { return unicode.IsSpace(c) || unicode.IsControl(c) }) {
		return fmt.Errorf("found %q, which matches no name, because names have no spaces; expected a glob such as web-*", glob)
	}
	if strings.ContainsAny(glob, "+(){}|$,") || strings.HasPrefix(glob, "^") || strings.Contains(glob, "-.*") || strings.HasPrefix(glob, ".") {
		return fmt.Errorf("found %q, which matches no name; expected one glob such as web-*, not a regular expression or a list", glob)
	}
	if strings.Contains(glob, "[!") {
		return fmt.Errorf("found %q; expected ^ instead of ! after [, such as [^a-c]", glob)
	}
	for _, r := range reversedRange.FindAllStringSubmatch(glob, -1) {
		if r[1] > r[2] {
			return fmt.Errorf("found %q, which matches no name, because %s comes after %s; expected a range such as [%[3]s-%[2]s]", glob, r[1], r[2])
		}
	}
	return nil
}

// CheckOwner returns an error unless an owner is empty or has the form KIND/NAME.
func CheckOwner(owner string) error {
	kind, name, ok := strings.Cut(owner, "/")
	if owner != "" && (!ok || kind == "" || name == "" || strings.Contains(name, "/")) {
		return fmt.Errorf("found %q; expected a kind and a name, such as ReplicaSet/web-*", owner)
	}
	return nil
}
