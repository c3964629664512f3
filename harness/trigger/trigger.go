// Package trigger finds the record of a history at which a fault must start or end. It
// compares each new record with the trigger of the fault. Package run then starts or ends
// the fault.
package trigger

import (
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// Match describes the record at which a trigger matched. If the fault has no trigger, all fields
// are empty.
type Match struct {
	// Description is the trigger in words. It is empty if the fault has no trigger.
	Description string
	// Request is the ID of the request or watch in the record, or 0 if the record contains none.
	// Replica is the name of the replica of the controllers under test that sent this request,
	// such as "subject-0".
	Request uint64
	Replica string
	// Object is the object in the record, or nil if the record contains none.
	Object *history.Ref
}

// OwnerLookup returns the controller of the object in a request, such as the ReplicaSet of a pod.
// Triggers with the field owner need it. It returns nil if the object has no controller or is
// unknown.
type OwnerLookup func(*history.Request) *history.Owner

// Matcher compares the records of a run, one at a time, with one trigger. When the trigger has
// matched, do not use the Matcher again. A Matcher is not safe for concurrent use.
type Matcher struct {
	trigger scenario.Trigger
	ownerOf OwnerLookup
	// after is the Matcher of trigger.After, a second trigger that must match first. It is nil if
	// trigger.After is nil, and as soon as the second trigger has matched.
	after     *Matcher
	count     int                         // number of records that have met the conditions of the trigger
	pending   map[uint64]*history.Request // requests without a response that meet the conditions of the trigger, by ID
	evaluated bool                        // true after the condition of a state trigger was evaluated once
	stateHeld bool                        // the result of that condition when it was last evaluated
}

// New returns a Matcher for a trigger. The parameter objects contains the objects at this time, on
// which the condition of a state trigger depends.
//
// The parameter requireChange matters for a state trigger whose condition is true already. If
// requireChange is false, the trigger matches at the next record. If it is true, the condition must
// first become false and then true again. Use true when a fault begins again, because the condition
// that began it before may still be true.
func New(trigger scenario.Trigger, ownerOf OwnerLookup, objects *Objects, requireChange bool) *Matcher {
	m := &Matcher{trigger: trigger, ownerOf: ownerOf, pending: map[uint64]*history.Request{}}
	if trigger.After != nil {
		m.after = New(*trigger.After, ownerOf, objects, requireChange)
	}
	m.stateHeld = requireChange && trigger.State != nil && objects.holds(trigger.State)
	return m
}

// Observe compares the next record with the trigger, and reports whether the trigger matches.
// Pass the record to [Objects.Observe] first, because a state trigger depends on the objects
// after the record.
func (m *Matcher) Observe(r *history.Record, objects *Objects) (Match, bool) {
	if m.after != nil {
		if _, matched := m.after.Observe(r, objects); !matched {
			return Match{}, false
		}
		m.after = nil
		if m.trigger.State == nil { // for other triggers, the record at which After matched does not count
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

// countReaches counts a record that meets the conditions of the trigger. The result is true if
// this record is the one at which the trigger matches. For example, a trigger with nth: 3 matches
// at the third such record.
func (m *Matcher) countReaches(nth int) bool {
	m.count++
	return m.count == nth
}

// matchRequest reports whether the record contains a request that meets the conditions of the
// trigger. If so, it stores the request and its object in the parameter match.
//
// For a trigger with the phase Committed, the record must contain the successful response to a
// matching request. If the request was sent before the Matcher existed, the result is false.
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

// selects reports whether a request has the verb, resource, name and owner that the trigger asks
// for.
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

// matchEvent reports whether the record contains the delivery of a watch event that meets the
// conditions of the trigger. If so, it stores the watch and the object in the parameter match.
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

// matchState reports whether the condition of a state trigger becomes true with this record. If
// the record contains a commit of the trigger's resource, matchState stores the object in the
// parameter match.
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
