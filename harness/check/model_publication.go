package check

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// presence says whether the cache contains one Service or Endpoints object, and whether the
// controller manages this object. For each presenceKind, such as managedService, it also contains
// the time until which that kind last applied.
type presence struct {
	now   presenceKind                 // the kind that applies now
	since time.Duration                // when the present kind (presence.now) began to apply
	until [presenceKinds]time.Duration // when each presenceKind last ceased to apply; 0 if it never applied
}

// presenceKind says whether the cache of a process contains an object, which is a Service or
// Endpoints. It also says whether the controller may write the Endpoints. For example, it must not
// write the Endpoints of a Service without a selector (unmanagedService).
type presenceKind int

// These values of presenceKind say what the cache contains, and whether the controller may write
// the Endpoints.
const (
	neverSeen            presenceKind = iota // the cache never contained the object
	absent                                   // the cache contained the object before, but no longer does
	managedService                           // the cache contains the Service, and the controller writes its Endpoints
	unmanagedService                         // the cache contains the Service, which has no selector or is of type ExternalName
	ordinaryEndpoints                        // the cache contains the Endpoints, without the leader annotation
	leaderElectionRecord                     // the cache contains the Endpoints, with the leader annotation
	presenceKinds                            // the number of the values above
)

// record stores that the given kind applies from the time in the parameter at. If another kind
// applied before, record stores this time as its end.
func (s *presence) record(at time.Duration, kind presenceKind) {
	if kind != s.now {
		s.until[s.now] = at
		s.now, s.since = kind, at
	}
}

// was reports whether one of the given kinds applied at any time in a period. The parameter from
// is the beginning of the period, which ends now.
func (s *presence) was(from time.Duration, kinds ...presenceKind) bool {
	for _, kind := range kinds {
		if s.now == kind || s.until[kind] > from {
			return true
		}
	}
	return false
}

// update records which versions of the Service and of its Endpoints the cache contains now. The
// model calls it when one of them, or a pod of the Service, has changed in the cache.
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

// earliestDecision returns the earliest time at which the process may have decided on a write of
// the Endpoints. The parameter base is the resourceVersion on which the write is based.
//
// The decision cannot precede the latest of three times:
//
//   - The start of the recent window (decisionWindow.from).
//   - The response to the previous write. A work queue never gives one key to two workers at a
//     time.
//   - The delivery of that resourceVersion, if it is the newest version in the cache. After a
//     failed write, this time does not count. The process may then have read the version from the
//     API server.
//
// earliestDecision subtracts lag (1 s) from the last two times as a tolerance.
func (state *serviceState) earliestDecision(base history.Version) time.Duration {
	since := max(state.from, state.answered-lag)
	if base != 0 && base == state.version.value && !state.lastWriteFailed {
		since = max(since, state.version.since-lag)
	}
	return since
}

// recordWrite records that the process sent a write of the Endpoints, and forgets versions that
// cannot have led to it.
//
// The process was last idle (sent nothing for a while) before the time in its field idleUntil. By
// then it had sent or dropped every write that it had decided on. recordWrite therefore moves the
// start of the recent window (decisionWindow.from) to lag (1 s) before idleUntil.
//
// The parameter base is the resourceVersion in the request, or 0.
func (state *serviceState) recordWrite(p *process, at time.Duration, base history.Version) {
	state.decisionWindow.callSent(p, at)
	state.from = max(state.from, p.idleUntil-lag)
	state.decidedBefore, state.decided = state.decided, state.earliestDecision(base)
}

// recordAnswer records the response to a write of the Endpoints. If client-go resends the write
// by itself, recordAnswer ignores whether the write failed, because the process makes no new
// decision.
func (state *serviceState) recordAnswer(r *history.Response, at time.Duration) {
	state.callAnswered(at)
	state.written = 0
	if r.OK() && r.Object != nil {
		state.written = r.Object.Version
	}
	if !isRetriedByClient(r) {
		state.answered, state.lastWriteFailed = at, !r.OK()
	}
}

// mayBeForeign reports whether the Endpoints may belong to another client, so that the controller
// must not write them. This is possible in two cases:
//
//   - The cache contains the Service, but the controller does not manage it: the Service has no
//     selector or is of type ExternalName.
//   - The Endpoints are a leader-election record, and the cache contains no Service with their
//     name.
func (state *serviceState) mayBeForeign() bool {
	return state.service.now == unmanagedService || state.endpoints.now == leaderElectionRecord && state.service.now != managedService
}

// canForget reports whether the model can delete this state. It can if, for longer than
// decisionWindowMax (90 s), no write of the Endpoints was in flight, and the cache contained
// neither the Service nor the Endpoints.
func (state *serviceState) canForget(at time.Duration) bool {
	gone := func(s *presence) bool { return s.now == neverSeen || s.now == absent && at-s.since > decisionWindowMax }
	return state.callsInFlight == 0 && at-state.lastActivity > decisionWindowMax && gone(&state.service) && gone(&state.endpoints)
}

// serviceState returns the state of the process for the Service with the given name. If there is
// none, it adds an empty state.
func (p *process) serviceState(service objectName) *serviceState {
	state := p.serviceStates[service]
	if state == nil {
		state = &serviceState{name: service}
		p.serviceStates[service] = state
	}
	return state
}

// recordStartupOrphans sets startupOrphans to the Endpoints in the cache that have no Service
// there. The controller must delete these Endpoints when it starts. The method does so once, when
// the caches of Services and Endpoints have synced.
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
