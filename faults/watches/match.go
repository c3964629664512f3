package watches

import (
	"slices"
	"strings"
	"sync"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// EventMatch contains the parameters with which watch-delay and watch-skip select watch events. If
// only the field Resource is set, every event in watches of this resource matches, including
// bookmarks. For watch-skip, the field Nth is always set: without the parameter, it is 1.
type EventMatch struct {
	Resource string `yaml:"resource"`
	Type     string `yaml:"type"`
	Name     string `yaml:"name"`
	Owner    string `yaml:"owner"`
	Nth      *int   `yaml:"nth"`
}

// eventTypes lists the permitted values of [EventMatch.Type]: ADDED, MODIFIED and DELETED.
var eventTypes = []string{string(history.Added), string(history.Modified), string(history.Deleted)}

// nthMax is the largest permitted value of [EventMatch.Nth], which counts matching events.
const nthMax = 1_000_000

// withEventMatch returns the documentation of all parameters of a fault type that selects watch
// events. The result begins with the parameters in [EventMatch]. The parameters in the argument
// own, which only this fault type has, follow.
//
// The argument resource is the first sentence of the text about the parameter "resource". The
// argument nth describes the default value of the parameter "nth".
func withEventMatch(resource, nth string, own ...faults.Param) []faults.Param {
	return append([]faults.Param{
		resourceParam(resource),
		{Name: "type", Description: "The type of the events.", Bounds: "one of " + strings.Join(eventTypes, ", "), Default: "any type"},
		{Name: "name", Description: "A glob for the object's name.", Bounds: "a glob (* ? [a-z])", Default: "any name"},
		{Name: "owner", Description: "A glob for the kind and name of the controlling owner of the object.", Bounds: "such as ReplicaSet/web-*", Default: "any owner, or none"},
		{Name: "nth", Description: "The fault acts on this matching event only, counted from 1 over all watches.", Bounds: "1 to 1000000", Default: nth},
	}, own...)
}

// resourceParam returns the documentation of the parameter "resource". The argument description is
// the first sentence of its text.
func resourceParam(description string) faults.Param {
	return faults.Param{Name: "resource", Description: description + " The resource may also be a custom resource that the scenario's workload creates.", Bounds: faults.ResourceBounds}
}

// validate returns an error for each invalid parameter, with its position in the scenario. It
// returns nil if all parameters are valid.
func (m *EventMatch) validate(params faults.Params) error {
	errs := []error{faults.Resource(params, m.Resource), faults.Glob(params, "name", m.Name), faults.OwnerGlob(params, m.Owner)}
	if m.Type != "" {
		errs = append(errs, faults.OneOf(params, "type", m.Type, eventTypes))
	}
	if m.Nth != nil {
		errs = append(errs, faults.Between(params, "nth", *m.Nth, 1, nthMax))
	}
	return scenario.JoinErrors(errs...)
}

// described returns "one event" if m.Nth is set, and otherwise "each event". The fault's "fired"
// record in the history contains this text.
func (m *EventMatch) described() string {
	if m.Nth != nil {
		return "one event"
	}
	return "each event"
}

// matches reports whether the fields Resource, Type, Name and Owner select an event of a watch.
// It ignores Nth, which counts the selected events.
func (m *EventMatch) matches(watch *history.Request, event *history.Delivery) bool {
	if watch.Resource != m.Resource {
		return false
	}
	if m.Type == "" && m.Name == "" && m.Owner == "" && m.Nth == nil {
		return true // bookmarks and errors also match, although they have no object
	}
	return slices.Contains(eventTypes, string(event.Type)) && (m.Type == "" || m.Type == string(event.Type)) &&
		history.MatchGlob(m.Name, event.Object.Name) && history.MatchOwner(m.Owner, event.Object.ControllerRef())
}

// eventSelection counts the watch events that match a fault's parameters, and decides to which of
// them the fault applies.
type eventSelection struct {
	matcher EventMatch

	counting sync.Mutex // the fault proxy calls the fault from many goroutines
	count    int        // number of matching events
}

// selects reports whether the fault applies to an event. If the field Nth of the parameters is
// set, the fault applies only to the matching event with this number. selects therefore counts the
// events that match the other parameters.
func (s *eventSelection) selects(watch *history.Request, event *history.Delivery) bool {
	if !s.matcher.matches(watch, event) {
		return false
	}
	s.counting.Lock()
	defer s.counting.Unlock()
	s.count++
	return s.matcher.Nth == nil || *s.matcher.Nth == s.count
}
