// Package trigger finds the record of a history at which a fault must start or end. It
// compares each new record with the trigger of the fault. Package run then starts or ends
// the fault.
package trigger

import (
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// Match describes the record that matched a trigger. The zero value means that the fault
// has no trigger.
type Match struct {
	// Description is the trigger in words, or "" if the fault has no trigger.
	Description string
	// Request is the ID of the request or watch in the matching record, or 0 if the record
	// contains none. Replica is the replica of the subject that sent this request.
	Request uint64
	Replica string
	// Object is the object in the matching record, or nil if the record contains none.
	Object *history.Ref
}

// OwnerLookup returns the controller of the object in a request. It returns nil if the
// object has no controller or is unknown.
type OwnerLookup func(*history.Request) *history.Owner

// Matcher compares the records of a run with one trigger, one record at a time. After the
// trigger has matched, the caller must not use the Matcher again. A Matcher is not safe for
// concurrent use.
type Matcher struct {
	trigger scenario.Trigger
	ownerOf OwnerLookup
	// after is the Matcher of the trigger in the field After, which must match first. It is
	// nil once that trigger has matched.
	after     *Matcher
	count     int                         // number of records so far that met the conditions of the trigger
	pending   map[uint64]*history.Request // requests that the trigger selects and that have no response yet, by ID
	evaluated bool                        // the state trigger has been evaluated before
	stateHeld bool                        // result of the last evaluation of the state trigger
}

// New returns a Matcher for a trigger.
//
// The condition of a state trigger may already be true. If requireChange is false, the trigger
// then matches at the next record. If it is true, the condition must first become false.
// Callers set requireChange when a fault begins again, because the condition of its last
// beginning may still be true.
func New(trigger scenario.Trigger, ownerOf OwnerLookup, objects *Objects, requireChange bool) *Matcher {
	m := &Matcher{trigger: trigger, ownerOf: ownerOf, pending: map[uint64]*history.Request{}}
	if trigger.After != nil {
		m.after = New(*trigger.After, ownerOf, objects, requireChange)
	}
	m.stateHeld = requireChange && trigger.State != nil && objects.holds(trigger.State)
	return m
}

// Observe compares the next record with the trigger, and reports whether the trigger
// matches. The caller must first pass the record to [Objects.Observe], because a state
// trigger depends on the state after the record.
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

// countReaches counts one more record that meets the conditions of the trigger. It reports
// whether this is the nth one, so that the trigger matches.
func (m *Matcher) countReaches(nth int) bool {
	m.count++
	return m.count == nth
}

// matchRequest reports whether the record is the request that the trigger waits for.
//
// In the phase Committed, it must be the successful response to such a request. The result is
// false for a request that the subject sent before the Matcher existed.
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

// selects reports whether a request meets the conditions of the trigger: verb, resource,
// name and owner.
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

// matchEvent reports whether the record is the delivery of a watch event that meets the
// conditions of the trigger.
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

// matchState reports whether the condition of a state trigger becomes true with this record.
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
