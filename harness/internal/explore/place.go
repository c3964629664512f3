package explore

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/kube-gauntlet/gauntlet/faults/processes"
	"github.com/kube-gauntlet/gauntlet/faults/requests"
	"github.com/kube-gauntlet/gauntlet/faults/watches"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/nearest"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// Write identifies a write of the controllers under test. It selects the same write in every run of
// the workload.
type Write struct {
	Verb        string `json:"verb"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource,omitempty"`
	// Name is a glob that matches the object's name, such as "web-*".
	Name string `json:"name"`
	// Nth is the write's number among the writes with the same verb, resource, subresource and
	// name, counted from 1. Committed is this number if only writes that the API server committed
	// are counted. It is 0 for a refused write.
	Nth       int `json:"nth"`
	Committed int `json:"committed,omitempty"`
}

// String describes the write, such as "create of pods web-* number 3".
func (w Write) String() string {
	resource := w.Resource
	if w.Subresource != "" {
		resource += "/" + w.Subresource
	}
	return fmt.Sprintf("%s of %s %s number %d", w.Verb, resource, w.Name, w.Nth)
}

// selects reports whether a request has the same verb, resource and subresource as the write, and
// a matching name.
func (w Write) selects(r *history.Request) bool {
	return r.Verb == w.Verb && r.Resource == w.Resource && r.Subresource == w.Subresource && history.MatchGlob(w.Name, r.ObjectName())
}

// count returns how many of the given requests have the verb, resource, subresource and name of
// w. If the last request is the write itself, the result is its number Nth.
func (w Write) count(requests []*history.Request) int {
	n := 0
	for _, r := range requests {
		if w.selects(r) {
			n++
		}
	}
	return n
}

// trigger returns a trigger that matches at this write. The argument phase says when: when the
// controller sends the write, or when the API server commits it.
func (w Write) trigger(phase scenario.Phase) *scenario.Trigger {
	nth := w.Nth
	if phase == scenario.Committed {
		nth = w.Committed
	}
	return &scenario.Trigger{Request: &scenario.RequestTrigger{
		Verb: w.Verb, Resource: w.Resource, Subresource: w.Subresource, Name: w.Name, Phase: phase, Nth: nth,
	}}
}

// Event identifies a watch event of the controllers under test. It selects the same event in every
// run of the workload.
type Event struct {
	Resource string            `json:"resource"`
	Type     history.EventType `json:"type"`
	Name     string            `json:"name"` // a glob that matches the object's name
	Nth      int               `json:"nth"`  // the event's number among the events with the same other fields, from 1
}

// String describes the event, such as "ADDED event of pods web-* number 3".
func (e Event) String() string {
	return fmt.Sprintf("%s event of %s %s number %d", e.Type, e.Resource, e.Name, e.Nth)
}

// match returns the parameters with which a watch fault, such as watch-delay, selects this event.
func (e Event) match() watches.EventMatch {
	return watches.EventMatch{Resource: e.Resource, Type: string(e.Type), Name: e.Name, Nth: &e.Nth}
}

// Action is the kind of fault that the search injects at a write or watch event, such as a crash.
type Action string

// These are the faults that the search injects at a write or watch event. The map descriptions
// explains each of them.
const (
	CrashBefore Action = "crash-before"
	Crash       Action = "crash"
	Lost        Action = "lost"
	Refused     Action = "refused"
	Late        Action = "late"
	Held        Action = "held"
	Skipped     Action = "skipped"
	Stale       Action = "stale"
)

// Actions has all actions, in the order in which a search tries them by default.
var Actions = []Action{Crash, Lost, Skipped, Stale, Refused, CrashBefore, Held, Late}

// DefaultDelay is how long an event or a response is late, unless the options of a search have
// another delay.
const DefaultDelay = 3 * time.Second

// These are the limits of the delay of an event or a response, which are those of the faults.
const (
	DelayMin = time.Millisecond
	DelayMax = 10 * time.Minute
)

// descriptions explains each action in a message, such as "the event arrives late".
var descriptions = map[Action]string{
	CrashBefore: "the subject is killed before the API server receives the write",
	Crash:       "the subject is killed after the API server has committed the write and before it receives the response",
	Lost:        "the API server commits the write and the response is lost",
	Refused:     "the write gets the error 500 and is not committed",
	Late:        "the API server commits the write and the response arrives late",
	Held:        "the event arrives late",
	Skipped:     "the subject never receives this version of the object",
	Stale:       "lists of the resource keep returning the objects of this time; after a later write the subject restarts, lists these old objects, and receives later events late",
}

// ParseActions converts names of actions, such as "crash", from a command line. It returns an error
// if a name is not one of the allowed actions, or if there are no names.
func ParseActions(names []string, allowed ...Action) ([]Action, error) {
	var actions []Action
	var known []string
	for _, a := range allowed {
		known = append(known, string(a))
	}
	for i, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("found unknown fault %q; expected %s%s", name, nearest.List(known, "or"), nearest.Suggestion(name, known))
		}
		if slices.Contains(names[:i], name) {
			return nil, fmt.Errorf("found fault %q twice; name each fault once", name)
		}
		actions = append(actions, Action(name))
	}
	if len(actions) == 0 {
		return nil, fmt.Errorf("found no fault; expected %s", nearest.List(known, "or"))
	}
	return actions, nil
}

// Place is a point of a run at which the search injects a fault. The action is the sort of fault.
// The point is a write or a watch event of the controllers under test. A place with the action
// stale has both a write and a watch event.
type Place struct {
	Action Action `json:"action"`
	Write  *Write `json:"write,omitempty"`
	Event  *Event `json:"event,omitempty"`
	// Object is the written object, or the object of the event. Related has the objects on which
	// the write depends. Order is the position of the write or event in the first run without
	// faults. The search needs these three fields to find pairs of places.
	Object  string   `json:"object"`
	Related []string `json:"related,omitempty"`
	Order   int64    `json:"order"`
}

// validate returns an error if a place from plan.json has a missing or invalid field. The error
// begins with the path of the field in the place.
func (p *Place) validate() error {
	if !slices.Contains(Actions, p.Action) {
		return fmt.Errorf(".action: found %q; expected %s", p.Action, nearest.List(Actions, "or"))
	}
	if p.Write == nil && p.Action != Held && p.Action != Skipped {
		return fmt.Errorf(".write: found no value; expected the write at which the fault %s is injected", p.Action)
	}
	if p.Event == nil && (p.Action == Held || p.Action == Skipped || p.Action == Stale) {
		return fmt.Errorf(".event: found no value; expected the watch event at which the fault %s is injected", p.Action)
	}
	if p.Write != nil && p.Write.Nth < 1 {
		return fmt.Errorf(".write.nth: found %d; expected at least 1", p.Write.Nth)
	}
	if p.Event != nil && p.Event.Nth < 1 {
		return fmt.Errorf(".event.nth: found %d; expected at least 1", p.Event.Nth)
	}
	return nil
}

// String describes the place of a fault, such as "crash at create of pods web-* number 3".
func (p Place) String() string {
	switch {
	case p.Event == nil:
		return fmt.Sprintf("%s at %s", p.Action, p.Write)
	case p.Write == nil:
		return fmt.Sprintf("%s at %s", p.Action, p.Event)
	}
	return fmt.Sprintf("%s at %s, restart after %s", p.Action, p.Event, p.Write)
}

const (
	downtime = 200 * time.Millisecond // the time from a crash of the controllers under test to their restart
	staleFor = 90 * time.Second       // the maximum time from the event to the list of the restarted controllers, which may have to wait for their lease
)

// faults returns the faults that the place adds to a scenario. The argument first is the index that
// the first of these faults will have in the scenario, because triggers refer to faults by index.
// The argument delay is how long an event or a response is late. It is also how long restarted
// controllers under test receive no new events.
func (p Place) faults(first int, delay time.Duration) ([]scenario.Fault, error) {
	switch p.Action {
	case CrashBefore:
		return crashAt(p.Write.trigger(scenario.Sent))
	case Crash:
		return crashAt(p.Write.trigger(scenario.Committed))
	case Lost:
		once := 1
		lost, err := newFault("response-lost", &requests.LostParams{
			Match: requests.Match{Verb: p.Write.Verb, Resource: p.Write.Resource, Subresource: p.Write.Subresource, Name: p.Write.Name, Nth: &once},
			How:   "reset", Breaks: "request",
		})
		lost.When, lost.For = p.Write.trigger(scenario.Sent), time.Second
		return []scenario.Fault{lost}, err
	case Refused:
		once := 1
		refused, err := newFault("api-error", &requests.ErrorParams{
			Match: requests.Match{Verb: p.Write.Verb, Resource: p.Write.Resource, Subresource: p.Write.Subresource, Name: p.Write.Name, Nth: &once},
			Code:  http.StatusInternalServerError,
		})
		refused.When, refused.For = p.Write.trigger(scenario.Sent), time.Second
		return []scenario.Fault{refused}, err
	case Late:
		once := 1
		late, err := newFault("response-slow", &requests.SlowParams{
			Match: requests.Match{Verb: p.Write.Verb, Resource: p.Write.Resource, Subresource: p.Write.Subresource, Name: p.Write.Name, Nth: &once},
			Delay: delay,
		})
		late.When, late.For = p.Write.trigger(scenario.Sent), min(delay+time.Second, DelayMax)
		return []scenario.Fault{late}, err
	case Held:
		held, err := newFault("watch-delay", &watches.DelayParams{EventMatch: p.Event.match(), Delay: delay})
		return []scenario.Fault{held}, err
	case Skipped:
		skipped, err := newFault("watch-skip", &watches.SkipParams{EventMatch: p.Event.match()})
		return []scenario.Fault{skipped}, err
	default:
		return p.stale(first, delay)
	}
}

// stale returns three faults for the action stale. The faults together act like an API server
// whose watch cache lags.
//
// After the event, lists of the resource return the objects as they were at that time. After the
// write, the controllers under test crash. The restarted controllers list these old objects, and
// receive later events only after the delay.
func (p Place) stale(first int, delay time.Duration) ([]scenario.Fault, error) {
	list, err := newFault("stale-list", &watches.StaleParams{Resource: p.Event.Resource})
	if err != nil {
		return nil, err
	}
	list.When = &scenario.Trigger{Event: &scenario.EventTrigger{
		Resource: p.Event.Resource, Type: string(p.Event.Type), Name: p.Event.Name, Nth: p.Event.Nth,
	}}
	list.Until, list.For = fires(first+2), staleFor
	crash, err := crashAt(p.Write.trigger(scenario.Committed))
	if err != nil {
		return nil, err
	}
	stall, err := newFault("watch-stall", &watches.StallParams{Resource: p.Event.Resource})
	stall.When, stall.For = fires(first), delay
	return []scenario.Fault{list, crash[0], stall}, err
}

// fires returns a trigger that matches when the fault with the given index first fires. With it,
// another fault can begin or end at that time.
func fires(index int) *scenario.Trigger {
	return &scenario.Trigger{Fault: &scenario.FaultTrigger{Index: index, Nth: 1}}
}

// mustFire returns the indexes of those faults that fire in every run that reaches the place. A run
// reaches the place when its write or watch event happens. If one of these faults does not fire,
// the run says nothing about the place. The argument first is the index of the place's first fault
// in the scenario.
func (p Place) mustFire(first int) []int {
	if p.Action == Stale {
		return []int{first, first + 1} // the third fault need not fire, because it may find no event to delay
	}
	return []int{first}
}

// crashAt returns a list with one fault, which kills the controllers under test when the trigger
// matches.
func crashAt(when *scenario.Trigger) ([]scenario.Fault, error) {
	fault, err := newFault("crash", &processes.CrashParams{Downtime: downtime})
	fault.When, fault.For = when, downtime
	return []scenario.Fault{fault}, err
}

// newFault returns a fault of the given type, such as "crash". The argument params is the struct
// with the fault's parameters, such as a *processes.CrashParams.
func newFault(name string, params any) (scenario.Fault, error) {
	p, err := scenario.MakeParams(name, params)
	return scenario.Fault{Name: name, Params: p}, err
}

// Scenario returns a copy of the scenario calm with the faults of the place. The scenario calm must
// have no faults.
func (p Place) Scenario(calm *scenario.Scenario) (*scenario.Scenario, error) {
	return trial{p}.scenario(calm, DefaultDelay)
}

// trial is one run that the search makes, with the faults of one place or of a pair of places.
type trial []Place

// id returns the text that identifies the trial in results.jsonl. A later search with the same
// plan uses the same text.
func (t trial) id() string { return t.String() }

// String describes the places of the trial, such as "crash at create of pods web-* number 3".
func (t trial) String() string {
	var places []string
	for _, p := range t {
		places = append(places, p.String())
	}
	return strings.Join(places, "; and ")
}

// mustFire returns the indexes of those faults of the trial that fire in every run that reaches the
// trial's places. The indexes are those in the scenario's list of faults.
func (t trial) mustFire() []int {
	var all []int
	for i, p := range t {
		all = append(all, p.mustFire(i)...) // in a trial with two places, each place has one fault
	}
	return all
}

// scenario returns a copy of a scenario, to which it adds the faults of the trial. The argument
// calm is this scenario, which must have no faults. The argument delay is how long an event or a
// response is late.
func (t trial) scenario(calm *scenario.Scenario, delay time.Duration) (*scenario.Scenario, error) {
	s := calm.Clone()
	for _, p := range t {
		faults, err := p.faults(len(s.Faults), delay)
		if err != nil {
			return nil, err
		}
		s.Faults = append(s.Faults, faults...)
		s.Name = fmt.Sprintf("%.40s-%s", s.Name, p.Action)
		s.Description = fmt.Sprintf("%.500s At %s: %s.", s.Description, p, descriptions[p.Action])
	}
	text, err := s.Marshal()
	if err != nil {
		return nil, err
	}
	return scenario.Parse(s.Name, text) // parsing validates the faults' parameters with the scenario's resources
}
