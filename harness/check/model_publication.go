package check

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// presence is how an object of some name stands, and until when it stood in
// other ways.
type presence struct {
	now   presenceKind
	since time.Duration
	until [presenceKinds]time.Duration
}

// presenceKind is what an object of some name calls for.
type presenceKind int

const (
	neverSeen            presenceKind = iota // the process has never had it in view
	absent                                   // it has gone from view
	managedService                           // a Service of which the controller keeps Endpoints
	unmanagedService                         // any other Service
	ordinaryEndpoints                        // Endpoints
	leaderElectionRecord                     // Endpoints that are a leader election's
	presenceKinds
)

// record says how the object stands from now on.
func (s *presence) record(at time.Duration, now presenceKind) {
	if now != s.now {
		s.until[s.now] = at
		s.now, s.since = now, at
	}
}

// was reports whether the object has stood in one of these ways at or after from.
func (s *presence) was(from time.Duration, any ...presenceKind) bool {
	for _, each := range any {
		if s.now == each || s.until[each] > from {
			return true
		}
	}
	return false
}

// update takes in what has become of the Service and its Endpoints in a view.
func (state *serviceState) update(v *view, at time.Duration) {
	s := v.serviceNamed(state.name)
	if n := len(state.services); n == 0 || state.services[n-1].value != s {
		state.services = append(keepSince(state.services, at-decisionWindowMax), cachedVersion[*service]{at, s})
	}
	if e := v.endpointsNamed(state.name); e != nil && e.Version > state.version.value {
		state.version = cachedVersion[history.Version]{at, e.Version}
	}
	switch {
	case s != nil && s.managed():
		state.service.record(at, managedService)
	case s != nil:
		state.service.record(at, unmanagedService)
	case state.service.now != neverSeen:
		state.service.record(at, absent)
	}
	switch e := v.endpointsNamed(state.name); {
	case e != nil && e.leaderElection:
		state.endpoints.record(at, leaderElectionRecord)
	case e != nil:
		state.endpoints.record(at, ordinaryEndpoints)
	case state.endpoints.now != neverSeen:
		state.endpoints.record(at, absent)
	}
}

// earliestDecision is from when what led to a write of the Endpoints from a version of theirs may
// date. One worker at a time sees to a Service: it begins after the answer to what it
// wrote before, and after it was shown the version, by what it was told until then but
// for the lag; unless it read the version live.
func (state *serviceState) earliestDecision(from history.Version) time.Duration {
	since := max(state.from, state.answered-lag)
	if from != 0 && from == state.version.value && !state.lastWriteFailed {
		since = max(since, state.version.since-lag)
	}
	return since
}

// recordWrite takes in a write that is sent. What the process had decided before it was idle,
// it had done or given up.
func (state *serviceState) recordWrite(of *process, at time.Duration) {
	state.decisionWindow.callSent(of, at)
	state.from = max(state.from, of.idleUntil-lag)
}

// recordAnswer takes in the answer to a write. What the client repeats by itself was
// decided before.
func (state *serviceState) recordAnswer(r *history.Response, at time.Duration) {
	state.callAnswered(at)
	if !isRetriedByClient(r) {
		state.answered, state.lastWriteFailed = at, !r.OK()
	}
}

// mayBeForeign reports whether there are, or may be, Endpoints by this name that
// are not the controller's.
func (state *serviceState) mayBeForeign() bool {
	return state.service.now == unmanagedService || state.endpoints.now == leaderElectionRecord && state.service.now != managedService
}

// canForget reports whether neither has been there for so long that no decision
// can depend on it.
func (state *serviceState) canForget(at time.Duration) bool {
	gone := func(s *presence) bool { return s.now == neverSeen || s.now == absent && at-s.since > decisionWindowMax }
	return state.callsInFlight == 0 && at-state.lastActivity > decisionWindowMax && gone(&state.service) && gone(&state.endpoints)
}

// serviceState returns the account with the name of a Service, opening it if need be.
func (p *process) serviceState(service objectName) *serviceState {
	known := p.serviceStates[service]
	if known == nil {
		known = &serviceState{name: service}
		p.serviceStates[service] = known
	}
	return known
}

// recordStartupOrphans takes down what the process finds at its start: Endpoints without a
// Service, as soon as it has been told of all there is.
func (p *process) recordStartupOrphans() {
	if p.startupOrphans != nil || p.view.reachedVersion[serviceResource] == 0 || p.view.reachedVersion[endpointsResource] == 0 {
		return
	}
	p.startupOrphans = map[types.UID]bool{}
	for uid, e := range p.view.endpoints {
		if p.view.serviceNamed(serviceName(e.Ref)) == nil {
			p.startupOrphans[uid] = true
		}
	}
}
