package check

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// presence records whether the cache contains an object with a certain name, and of which
// kind. It also records when each former state ended.
type presence struct {
	now   presenceKind
	since time.Duration
	until [presenceKinds]time.Duration
}

// presenceKind says whether the cache contains an object with a certain name, and which
// kind of object. It distinguishes only what matters for writes of Endpoints.
type presenceKind int

const (
	neverSeen            presenceKind = iota // was never in the cache
	absent                                   // was deleted from the cache
	managedService                           // a Service with a selector: the controller manages its Endpoints
	unmanagedService                         // any other Service
	ordinaryEndpoints                        // Endpoints
	leaderElectionRecord                     // Endpoints that are a leader-election record
	presenceKinds
)

// record sets the current state, and records when the former state ended.
func (s *presence) record(at time.Duration, now presenceKind) {
	if now != s.now {
		s.until[s.now] = at
		s.now, s.since = now, at
	}
}

// was reports whether the object was in one of the given states at any time after the given
// time.
func (s *presence) was(from time.Duration, kinds ...presenceKind) bool {
	for _, kind := range kinds {
		if s.now == kind || s.until[kind] > from {
			return true
		}
	}
	return false
}

// update records the current state of the Service and its Endpoints in the cache.
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

// earliestDecision returns the earliest time at which the process may have decided on a
// write of the Endpoints. The parameter from is the resourceVersion on which the write is
// based.
//
// Only one worker at a time processes a Service, so the decision follows the response to
// the previous write. It also follows the delivery of the version on which the write is
// based, unless the process may have read that version from the API server. The function
// subtracts lag from both times.
func (state *serviceState) earliestDecision(from history.Version) time.Duration {
	since := max(state.from, state.answered-lag)
	if from != 0 && from == state.version.value && !state.lastWriteFailed {
		since = max(since, state.version.since-lag)
	}
	return since
}

// recordWrite records that the process sent a write. It moves the start of the decision
// window forward, because the process has executed or dropped every decision that it made
// before it was last idle.
func (state *serviceState) recordWrite(p *process, at time.Duration) {
	state.decisionWindow.callSent(p, at)
	state.from = max(state.from, p.idleUntil-lag)
}

// recordAnswer records the response to a write. If client-go retries the write by itself,
// the process makes no new decision.
func (state *serviceState) recordAnswer(r *history.Response, at time.Duration) {
	state.callAnswered(at)
	if !isRetriedByClient(r) {
		state.answered, state.lastWriteFailed = at, !r.OK()
	}
}

// mayBeForeign reports whether the Endpoints with this name may belong to another client
// than the controller.
func (state *serviceState) mayBeForeign() bool {
	return state.service.now == unmanagedService || state.endpoints.now == leaderElectionRecord && state.service.now != managedService
}

// canForget reports whether the Service and its Endpoints have been absent for longer
// than the recent window.
func (state *serviceState) canForget(at time.Duration) bool {
	gone := func(s *presence) bool { return s.now == neverSeen || s.now == absent && at-s.since > decisionWindowMax }
	return state.callsInFlight == 0 && at-state.lastActivity > decisionWindowMax && gone(&state.service) && gone(&state.endpoints)
}

// serviceState returns the state of the process for a Service name, and creates it if it
// does not exist.
func (p *process) serviceState(service objectName) *serviceState {
	state := p.serviceStates[service]
	if state == nil {
		state = &serviceState{name: service}
		p.serviceStates[service] = state
	}
	return state
}

// recordStartupOrphans records the Endpoints without a Service, as soon as the caches of
// Services and Endpoints have synced.
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
