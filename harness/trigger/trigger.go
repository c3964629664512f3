// Package trigger tells from a history, while it is made, when the moment has
// come that a fault of a scenario waits for. It follows records and acts on
// nothing: what happens at the moment is up to the run.
package trigger

import (
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// Match is what made a moment come. The zero value is no moment.
type Match struct {
	// Description is the moment in words, "" if there was none to wait for.
	Description string
	// Request is the ID of the request, or of the watch, that it was about, or 0;
	// Replica, whose it was.
	Request uint64
	Replica string
	// Object is what it was about, or nil.
	Object *history.Ref
}

// OwnerLookup finds the owner that controls the object of a request, nil if it has none or
// the object is unknown.
type OwnerLookup func(*history.Request) *history.Owner

// Matcher waits for a moment, once. It is not safe for concurrent use.
type Matcher struct {
	trigger   scenario.Trigger
	ownerOf   OwnerLookup
	after     *Matcher // what has to come first; nil once it has
	count     int      // how often what is counted has happened
	pending   map[uint64]*history.Request
	evaluated bool // at the world
	stateHeld bool // what is to be so of it was so at the last look
}

// New makes what waits for a moment. What is to be so of the world, and is so
// already, counts at the next record, unless it is waited for anew.
func New(moment scenario.Trigger, kin OwnerLookup, world *Objects, anew bool) *Matcher {
	w := &Matcher{trigger: moment, ownerOf: kin, pending: map[uint64]*history.Request{}}
	if moment.After != nil {
		w.after = New(*moment.After, kin, world, anew)
	}
	w.stateHeld = anew && moment.State != nil && world.holds(moment.State)
	return w
}

// Observe takes in the next record, which the world has taken in already, and
// reports whether the moment has come with it, and by what.
func (w *Matcher) Observe(r *history.Record, world *Objects) (Match, bool) {
	if w.after != nil {
		if _, came := w.after.Observe(r, world); !came {
			return Match{}, false
		}
		w.after = nil
		if w.trigger.State == nil { // nothing is counted twice
			return Match{}, false
		}
	}
	cause := Match{Description: w.trigger.String()}
	switch m := w.trigger; {
	case m.Request != nil:
		return cause, w.matchRequest(r, &cause) && w.countReaches(m.Request.Nth)
	case m.Event != nil:
		return cause, w.matchEvent(r, &cause) && w.countReaches(m.Event.Nth)
	case m.State != nil:
		return cause, w.matchState(r, world, &cause)
	case m.Fault != nil:
		fires := r.Fault != nil && r.Fault.Event == history.FaultFired && r.Fault.Index == m.Fault.Index
		return cause, fires && w.countReaches(m.Fault.Nth)
	default:
		return cause, r.Step != nil && r.Step.Index == m.Step.Index && string(r.Step.Event) == string(m.Step.At)
	}
}

// countReaches counts one more, and reports whether it is the nth.
func (w *Matcher) countReaches(nth int) bool {
	w.count++
	return w.count == nth
}

// matchRequest reports whether a request that is meant is in the phase that is meant.
// What was sent before it was waited for does not count.
func (w *Matcher) matchRequest(r *history.Record, cause *Match) bool {
	m, request := w.trigger.Request, r.Request
	switch {
	case request != nil && !w.selects(request):
		return false
	case request != nil && m.Phase == scenario.Committed:
		w.pending[request.ID] = request
		return false
	case r.Response != nil && w.pending[r.Response.ID] != nil:
		request = w.pending[r.Response.ID]
		delete(w.pending, r.Response.ID)
		if !r.Response.Reached || r.Response.ServerCode < 200 || r.Response.ServerCode > 299 {
			return false
		}
	case request == nil:
		return false
	}
	cause.Request, cause.Replica = request.ID, request.Subject
	cause.Object = &history.Ref{Resource: request.Resource, Namespace: request.Namespace, Name: request.ObjectName()}
	return true
}

// selects reports whether a request is one of those that the moment is about.
func (w *Matcher) selects(request *history.Request) bool {
	m := w.trigger.Request
	verb := request.Verb == m.Verb && request.Subresource == m.Subresource
	if m.Verb == scenario.AnyWrite {
		verb = request.IsWrite() && (m.Subresource == "" || request.Subresource == m.Subresource)
	}
	return verb && (m.Resource == "" || request.Resource == m.Resource) &&
		history.MatchGlob(m.Name, request.ObjectName()) &&
		(m.Owner == "" || history.MatchOwner(m.Owner, w.ownerOf(request)))
}

// matchEvent reports whether a watch event that is meant is about to be handed over.
func (w *Matcher) matchEvent(r *history.Record, cause *Match) bool {
	m, d := w.trigger.Event, r.Delivery
	if d == nil || d.Resource != m.Resource || d.Type == history.Bookmark || d.Type == history.Error ||
		(m.Type != "" && string(d.Type) != m.Type) ||
		!history.MatchGlob(m.Name, d.Object.Name) || !history.MatchOwner(m.Owner, d.Object.ControllerRef()) {
		return false
	}
	ref := d.Object.Ref
	cause.Request, cause.Replica, cause.Object = d.ID, d.Subject, &ref
	return true
}

// matchState reports whether the world has come to be as it is to be.
func (w *Matcher) matchState(r *history.Record, world *Objects, cause *Match) bool {
	m := w.trigger.State
	if r.Commit != nil && r.Commit.Object.Resource == m.Resource {
		ref := r.Commit.Object.Ref
		cause.Object = &ref
	} else if w.evaluated {
		return false // nothing has changed
	}
	w.evaluated = true
	held := w.stateHeld
	w.stateHeld = world.holds(m)
	return w.stateHeld && !held
}
