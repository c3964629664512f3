package check

import (
	"maps"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// liveRead describes a GET request for a ReplicaSet or ReplicationController, with which the
// process bypassed its cache.
type liveRead struct {
	sentSeq     int64           // the sequence number of the record that contains the request
	terminating bool            // true if the returned object had a deletionTimestamp
	version     history.Version // the resourceVersion of the returned object
}

// lastRead describes the answer to a GET request for an owner.
type lastRead struct {
	sentAt      time.Duration // when the request was sent, on the clock of the process
	uid         types.UID     // the UID of the returned object; empty if the object did not exist
	terminating bool          // true if the returned object had a deletionTimestamp
	// afterFailure is true if a write of the same object failed less than lag (1 s) before. That failure
	// may be the reason for the request, and not an adoption.
	afterFailure bool
}

// mayAdopt reports whether an owner with the given UID may adopt objects, according to the last read.
func (l lastRead) mayAdopt(owner types.UID) bool { return l.uid == owner && !l.terminating }

// clientRetryMax is the maximum time after a failure in which client-go may resend the request by
// itself. A later request comes from a new sync.
const clientRetryMax = time.Minute

// newProcess returns a process that has just started: its caches are empty, and it has sent
// nothing.
func newProcess(name string, d *objects.Decoder, tested *testedControllers, settings Settings) *process {
	return &process{
		name:        name,
		tested:      tested,
		view:        newView(d, tested),
		ownerStates: map[types.UID]*ownerState{},

		rollouts:      map[types.UID]*rolloutState{},
		serviceStates: map[objectName]*serviceState{},

		disconnectedAt: never,

		idleAfter:     settings.idleAfter(),
		batchTime:     settings.batchTime(),
		clientRetries: map[string]time.Duration{},
		adopted:       map[types.UID]types.UID{},

		deleting:  map[types.UID]*ownerState{},
		liveReads: map[types.UID]liveRead{},
		lastReads: map[objectName]lastRead{}, failedWrites: map[objectName]time.Duration{},
	}
}

// ownerState returns the state of the process for the ReplicaSet or ReplicationController with
// the given UID. If there is none, it adds an empty state.
func (p *process) ownerState(owner types.UID) *ownerState {
	state := p.ownerStates[owner]
	if state == nil {
		state = newOwnerState(p, owner)
		p.ownerStates[owner] = state
	}
	return state
}

// recordRequest records that the process sent a request, and returns the request as a call, the
// form that checkers read. Do not use it for watch requests.
func (p *process) recordRequest(r *history.Request, seq int64, at time.Duration) *call {
	c := &call{process: p, id: r.ID, seq: seq, sentAt: at}
	c.key = r.Verb + " " + r.Resource + " " + r.Subresource + " " + r.Namespace + "/" + r.Name
	if r.Resource == leaseResource {
		c.verb = callLease
		if r.Verb == "get" {
			p.lease.recordRead(at)
		}
		if r.Object != nil {
			c.writesLease = true
			p.lease.recordRequest(r, seq, at)
		}
		return c
	}
	p.endIdlePeriod(at)
	if at-p.prunedAt > decisionWindowMax {
		p.view.prune(at - decisionWindowMax)
		p.prunedAt = at
	}
	p.callsInFlight++
	p.lastActivity = at
	p.classify(c, r)
	c.update = p.updateOf(r)
	if c.ownerState != nil {
		c.ownerState.recordCall(c)
		c.queueKey = workQueueKey{process: p, uid: c.ownerState.uid}
	}
	if c.ownerState == nil && c.rollout == nil && c.serviceState == nil && len(p.tested.generic) > 0 && r.IsWrite() {
		p.classifyGeneric(c, r)
	}
	delete(p.clientRetries, c.key)
	return c
}

// endIdlePeriod ends the idle period of the process, because the process sends a request now. A
// process is idle if it has sent nothing for a while and awaits no response. It is not idle while
// client-go may still resend a failed request. If the process was not idle, endIdlePeriod does
// nothing.
//
// All requests that the process decided on before the idle period have been sent or dropped. The
// model can therefore forget older versions.
func (p *process) endIdlePeriod(at time.Duration) {
	if !p.idle(at) {
		return
	}
	p.idlePeriods++
	p.idleUntil = at
	p.view.prune(at - lag)
	maps.DeleteFunc(p.rollouts, func(uid types.UID, r *rolloutState) bool {
		return p.view.deployments[uid] == nil && r.callsInFlight == 0
	})
	maps.DeleteFunc(p.serviceStates, func(_ objectName, state *serviceState) bool { return state.canForget(at) })
	for uid, state := range p.ownerStates {
		state.becameIdle(at)
		if state.closed {
			delete(p.ownerStates, uid)
		}
	}
}

// clientMayRetry reports whether client-go may still resend any failed request of the process by
// itself. It forgets requests that failed longer than clientRetryMax ago.
func (p *process) clientMayRetry(at time.Duration) bool {
	for key, since := range p.clientRetries {
		if at-since > clientRetryMax {
			delete(p.clientRetries, key)
		}
	}
	return len(p.clientRetries) > 0
}

// recordAnswer records the response to a request. It updates the process, and the state of the
// ReplicaSet, Deployment or Service for which the process sent the request.
func (p *process) recordAnswer(c *call, r *history.Response, at time.Duration) {
	if c.verb == callLease {
		if !r.OK() && r.Code != 404 && r.Code != 409 {
			p.leaseFailed, p.leaseLost = true, at
		}
		return
	}
	p.callsInFlight--
	p.lastActivity = at
	if isRetriedByClient(r) {
		p.clientRetries[c.key] = at
	}
	switch {
	case c.verb == callAdoptOrRelease && c.generic == nil && r.OK() && c.pod != nil && c.ownershipChange.adopts:
		p.adopted[c.pod.UID] = c.ownershipChange.owner
		if c.ownerState != nil {
			c.ownerState.recordAdopted(c.pod, at)
		}
	case c.verb == callAdoptOrRelease && c.generic == nil && (r.Code == http.StatusNotFound || r.Code == http.StatusUnprocessableEntity) && c.pod != nil && c.ownerState != nil:
		delete(c.ownerState.adopted, c.pod.UID) // the controller continues without the pod
	case c.verb == callReadOwner && r.OK() && r.Object != nil:
		p.liveReads[r.Object.UID] = liveRead{sentSeq: c.seq, terminating: r.Object.Terminating(), version: r.Object.Version}
		p.recordLiveRead(r.Object, at)
	}
	if c.object != (objectName{}) {
		p.recordObjectAnswer(c, r, at)
	}
	switch {
	case c.ownerState != nil:
		c.ownerState.recordAnswer(c, r, at)
	case c.rollout != nil:
		p.recordRolloutAnswer(c, r, at)
	case c.serviceState != nil:
		c.serviceState.recordAnswer(r, at)
	}
}

// recordObjectAnswer records the response to a read or write of a ReplicaSet, ReplicationController or
// Deployment; see process.lastReads.
func (p *process) recordObjectAnswer(c *call, r *history.Response, at time.Duration) {
	failedAt, failed := p.failedWrites[c.object]
	read := lastRead{sentAt: c.sentAt, afterFailure: failed && c.sentAt-failedAt < lag}
	switch {
	case !c.reads && !r.OK():
		p.failedWrites[c.object] = at
	case c.reads && r.OK() && r.Object != nil:
		read.uid, read.terminating = r.Object.UID, r.Object.Terminating()
		p.lastReads[c.object] = read
	case c.reads && r.Code == http.StatusNotFound:
		p.lastReads[c.object] = read
	}
}

// idle reports whether the process has no sync in progress. It has then sent nothing for idleAfter, it
// awaits no response, and client-go resends no failed request.
func (p *process) idle(at time.Duration) bool {
	return p.callsInFlight == 0 && at-p.lastActivity >= p.idleAfter && !p.clientMayRetry(at)
}
