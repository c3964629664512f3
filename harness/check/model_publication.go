package check

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// presence records whether the cache contains a certain Service or Endpoints object, and of
// which type it is. For each state, it also records when the state last ended.
type presence struct {
	now   presenceKind                 // the current state
	since time.Duration                // when the current state began
	until [presenceKinds]time.Duration // when each state last ended; 0 if it never ended
}

// presenceKind says whether the cache contains a certain object, and of which type it is. The
// types decide whether the controller may write the Endpoints.
type presenceKind int

// The values of presenceKind.
const (
	neverSeen            presenceKind = iota // the cache never contained the object
	absent                                   // the cache contained the object before, but no longer does
	managedService                           // the object is a Service whose Endpoints the controller writes
	unmanagedService                         // the object is a Service without a selector, or of type ExternalName
	ordinaryEndpoints                        // the object is an Endpoints object without leader annotation
	leaderElectionRecord                     // the object is an Endpoints object with leader annotation
	presenceKinds                            // the number of the values above
)

// record sets the current state. If it differs from the former state, record stores when the
// former state ended.
func (s *presence) record(at time.Duration, now presenceKind) {
	if now != s.now {
		s.until[s.now] = at
		s.now, s.since = now, at
	}
}

// was reports whether the object was in one of the given states at the time from or later.
func (s *presence) was(from time.Duration, kinds ...presenceKind) bool {
	for _, kind := range kinds {
		if s.now == kind || s.until[kind] > from {
			return true
		}
	}
	return false
}

// update records which versions of the Service and its Endpoints the cache contains now.
func (state *serviceState) update(v *view, at time.Duration) {
	s := v.serviceNamed(state.name)
	if n := len(state.services); n == 0 || state.services[n-1].value != s {
		state.services = append(keepSince(state.services, at-decisionWindowMax), cachedVersion[*objects.Service]{at, s})
	}
	if e := v.endpointsNamed(state.name); e != nil && e.Version > state.version.value {
		state.version = cachedVersion[history.Version]{at, e.Version}
	}
	switch {
	case s != nil && s.Managed():
		state.service.record(at, managedService)
	case s != nil:
		state.service.record(at, unmanagedService)
	case state.service.now != neverSeen:
		state.service.record(at, absent)
	}
	switch e := v.endpointsNamed(state.name); {
	case e != nil && e.LeaderElection:
		state.endpoints.record(at, leaderElectionRecord)
	case e != nil:
		state.endpoints.record(at, ordinaryEndpoints)
	case state.endpoints.now != neverSeen:
		state.endpoints.record(at, absent)
	}
}

// earliestDecision returns the earliest time at which the process may have decided on a write
// of the Endpoints. The parameter from is the resourceVersion on which the write is based.
//
// The decision cannot be older than the later of two times:
//
//   - The response to the previous write. A work queue never gives one key to two workers at a
//     time.
//   - The delivery of version from, if it is the newest version in the cache. After a failed
//     write, this time does not count: the process may have read the version from the API
//     server.
//
// earliestDecision subtracts lag from both times as a tolerance.
func (state *serviceState) earliestDecision(from history.Version) time.Duration {
	since := max(state.from, state.answered-lag)
	if from != 0 && from == state.version.value && !state.lastWriteFailed {
		since = max(since, state.version.since-lag)
	}
	return since
}

// recordWrite records that the process sent a write of the Endpoints.
//
// All writes from before the last idle period have been sent or dropped. recordWrite therefore
// moves the start of the decision window forward, to lag before the end of that period.
func (state *serviceState) recordWrite(p *process, at time.Duration) {
	state.decisionWindow.callSent(p, at)
	state.from = max(state.from, p.idleUntil-lag)
}

// recordAnswer records the response to a write of the Endpoints. It ignores the result if
// client-go retries the write by itself, because the process then makes no new decision.
func (state *serviceState) recordAnswer(r *history.Response, at time.Duration) {
	state.callAnswered(at)
	if !isRetriedByClient(r) {
		state.answered, state.lastWriteFailed = at, !r.OK()
	}
}

// mayBeForeign reports whether the Endpoints with this name may belong to another client. The
// controller must not write them then.
//
// This is the case if the controller does not manage their Service. It is also the case if they
// are a leader-election record, unless the cache contains a managed Service with the same name.
func (state *serviceState) mayBeForeign() bool {
	return state.service.now == unmanagedService || state.endpoints.now == leaderElectionRecord && state.service.now != managedService
}

// canForget reports whether the state is no longer needed. This is so if no write is in
// flight, and the cache has contained neither the Service nor the Endpoints for longer than
// decisionWindowMax.
func (state *serviceState) canForget(at time.Duration) bool {
	gone := func(s *presence) bool { return s.now == neverSeen || s.now == absent && at-s.since > decisionWindowMax }
	return state.callsInFlight == 0 && at-state.lastActivity > decisionWindowMax && gone(&state.service) && gone(&state.endpoints)
}

// serviceState returns the state of the process for the Service with the given name. It adds
// an empty state if there is none.
func (p *process) serviceState(service objectName) *serviceState {
	state := p.serviceStates[service]
	if state == nil {
		state = &serviceState{name: service}
		p.serviceStates[service] = state
	}
	return state
}

// recordStartupOrphans sets startupOrphans to the cached Endpoints that have no Service. It
// does so once, when the caches of Services and Endpoints have synced.
func (p *process) recordStartupOrphans() {
	if p.startupOrphans != nil || p.view.reachedVersion[objects.ServiceResource] == 0 || p.view.reachedVersion[objects.EndpointsResource] == 0 {
		return
	}
	p.startupOrphans = map[types.UID]bool{}
	for uid, e := range p.view.endpoints {
		if p.view.serviceNamed(serviceName(e.Ref)) == nil {
			p.startupOrphans[uid] = true
		}
	}
}
