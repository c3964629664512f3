// Package trigger detects when the trigger of a fault matches, while the history is
// recorded. It does not start or end faults itself: package run does, when a trigger
// matches.
package trigger

import (
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// Match describes the record that matched the trigger of a fault. The zero value means that
// the fault has no trigger.
type Match struct {
	// Description is the trigger as text; empty if there is no trigger.
	Description string
	// Request is the ID of the request or watch in the matching record; 0 if there is none.
	// Replica is the replica that sent it.
	Request uint64
	Replica string
	// Object is the object in the matching record; nil if there is none.
	Object *history.Ref
}

// OwnerLookup returns the controller of the object that a request addresses. It returns
// nil if the object has no controller or is unknown.
type OwnerLookup func(*history.Request) *history.Owner

// Matcher matches records against one trigger. It matches at most once. It is not safe for
// concurrent use.
type Matcher struct {
	trigger   scenario.Trigger
	ownerOf   OwnerLookup
	after     *Matcher                    // trigger that must match first; nil once it has matched
	count     int                         // number of matching records so far
	pending   map[uint64]*history.Request // selected requests without a response, by ID
	evaluated bool                        // the state trigger has been evaluated before
	stateHeld bool                        // result of the last evaluation of the state trigger
}

// New returns a Matcher for a trigger. A state trigger whose condition is already true
// matches at the next record. If requireChange is true, the condition must first become
// false.
func New(trigger scenario.Trigger, ownerOf OwnerLookup, objects *Objects, requireChange bool) *Matcher {
	m := &Matcher{trigger: trigger, ownerOf: ownerOf, pending: map[uint64]*history.Request{}}
	if trigger.After != nil {
		m.after = New(*trigger.After, ownerOf, objects, requireChange)
	}
	m.stateHeld = requireChange && trigger.State != nil && objects.holds(trigger.State)
	return m
}

// Observe processes the next record, and reports whether the trigger matches at it. The
// caller must first pass the record to [Objects.Observe], because a state trigger depends
// on the state after the record.
func (m *Matcher) Observe(r *history.Record, objects *Objects) (Match, bool) {
	if m.after != nil {
		if _, matched := m.after.Observe(r, objects); !matched {
			return Match{}, false
		}
		m.after = nil
		if m.trigger.State == nil { // the record that matched After does not count for this trigger
			return Match{}, false
		}
	}
	match := Match{Description: m.trigger.String()}
	switch spec := m.trigger; {
	case spec.Request != nil:
		return match, m.matchRequest(r, &match) && m.countReaches(spec.Request.Nth)
	case spec.Event != nil:
		return match, m.matchEvent(r, &match) && m.countReaches(spec.Event.Nth)
	case spec.State != nil:
		return match, m.matchState(r, objects, &match)
	case spec.Fault != nil:
		fires := r.Fault != nil && r.Fault.Event == history.FaultFired && r.Fault.Index == spec.Fault.Index
		return match, fires && m.countReaches(spec.Fault.Nth)
	default:
		return match, r.Step != nil && r.Step.Index == spec.Step.Index && string(r.Step.Event) == string(spec.Step.At)
	}
}

// countReaches counts one more record that meets the trigger's conditions. It reports
// whether this record is the nth one, at which the trigger matches.
func (m *Matcher) countReaches(nth int) bool {
	m.count++
	return m.count == nth
}

// matchRequest reports whether the record shows a selected request in the trigger's
// phase. Requests that the subject sent before the Matcher existed do not match.
func (m *Matcher) matchRequest(r *history.Record, match *Match) bool {
	spec, request := m.trigger.Request, r.Request
	switch {
	case request != nil && !m.selects(request):
		return false
	case request != nil && spec.Phase == scenario.Committed:
		m.pending[request.ID] = request
		return false
	case r.Response != nil && m.pending[r.Response.ID] != nil:
		request = m.pending[r.Response.ID]
		delete(m.pending, r.Response.ID)
		if !r.Response.Reached || r.Response.ServerCode < 200 || r.Response.ServerCode > 299 {
			return false
		}
	case request == nil:
		return false
	}
	match.Request, match.Replica = request.ID, request.Subject
	match.Object = &history.Ref{Resource: request.Resource, Namespace: request.Namespace, Name: request.ObjectName()}
	return true
}

// selects reports whether the trigger selects the request.
func (m *Matcher) selects(request *history.Request) bool {
	spec := m.trigger.Request
	verb := request.Verb == spec.Verb && request.Subresource == spec.Subresource
	if spec.Verb == scenario.AnyWrite {
		verb = request.IsWrite() && (spec.Subresource == "" || request.Subresource == spec.Subresource)
	}
	return verb && (spec.Resource == "" || request.Resource == spec.Resource) &&
		history.MatchGlob(spec.Name, request.ObjectName()) &&
		(spec.Owner == "" || history.MatchOwner(spec.Owner, m.ownerOf(request)))
}

// matchEvent reports whether the record is the delivery of a selected watch event.
func (m *Matcher) matchEvent(r *history.Record, match *Match) bool {
	spec, d := m.trigger.Event, r.Delivery
	if d == nil || d.Resource != spec.Resource || d.Type == history.Bookmark || d.Type == history.Error ||
		(spec.Type != "" && string(d.Type) != spec.Type) ||
		!history.MatchGlob(spec.Name, d.Object.Name) || !history.MatchOwner(spec.Owner, d.Object.ControllerRef()) {
		return false
	}
	ref := d.Object.Ref
	match.Request, match.Replica, match.Object = d.ID, d.Subject, &ref
	return true
}

// matchState reports whether the condition of a state trigger becomes true at the record.
func (m *Matcher) matchState(r *history.Record, objects *Objects, match *Match) bool {
	spec := m.trigger.State
	if r.Commit != nil && r.Commit.Object.Resource == spec.Resource {
		ref := r.Commit.Object.Ref
		match.Object = &ref
	} else if m.evaluated {
		return false // no object of the resource changed
	}
	m.evaluated = true
	held := m.stateHeld
	m.stateHeld = objects.holds(spec)
	return m.stateHeld && !held
}
