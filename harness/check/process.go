package check

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// process is one life of one instance of the subject. A restart begins another:
// nothing that a process knew or waited for outlives it.
type process struct {
	name    string
	ended   bool
	view    *view
	ledgers map[types.UID]*ledger // by owner
	// rollouts are the accounts with Deployments, publications those with Services.
	rollouts     map[types.UID]*rollout
	publications map[objectName]*publication
	// leftovers is the Endpoints that had no Service when the process began; nil
	// until it has been told of all there is.
	leftovers map[types.UID]bool

	// rest is for how long it must do nothing to count as idle.
	rest time.Duration
	// drain is in what time a whole batch gets past its client's rate limit: a
	// decision about one object is no older than that, when no call is under way.
	drain   time.Duration
	working int           // calls in flight that are part of its work
	lastAt  time.Duration // when it last sent such a call or was answered
	// naps is the calls that the client may be about to repeat by itself, with
	// the controller none the wiser, and since when (trap 13).
	naps map[string]time.Duration
	// spells counts the times that it was idle; rousedAt is when that last ended.
	spells   int
	rousedAt time.Duration
	// sweptAt is when it was last seen to that nothing is kept of pods for longer than
	// memory: a process may never be idle.
	sweptAt time.Duration

	// deleting is for which owner the process deletes each pod that its view
	// shows active. The view may show the pod to be another's when it goes.
	deleting map[types.UID]*ledger
	// adopted is the owner of each pod that the process was told it adopted,
	// before its view shows so.
	adopted map[types.UID]types.UID
	// reads is the last answered live read of each owner.
	reads map[types.UID]liveRead
	// tenure is how it stands with the lease.
	tenure tenure
	// leaseLost is when a call for a lease last failed, or a leader that could not renew
	// it in time ended without an answer to one; leaseFailed, whether any has.
	leaseLost   time.Duration
	leaseFailed bool
}

// item is a key of one of a process' work queues: an owner of pods or a
// Deployment by its UID, a Service by its name.
type item struct {
	process *process
	uid     types.UID
	service objectName
}

// liveRead is what a process got when it asked the API server for an owner.
type liveRead struct {
	sent        int64 // the request's record
	terminating bool
	version     history.Version
}

// call is a request that is part of the subject's work.
type call struct {
	process     *process
	id          uint64
	seq         int64 // of the request's record
	at          time.Duration
	verb        callVerb
	key         string          // equal for the same request sent again
	item        item            // the key of a work queue that it is part of; zero if none can be told
	ledger      *ledger         // of the owner whose pods it is for; nil if none can be told
	rollout     *rollout        // of the Deployment that it is for; nil if it is for none
	scaling     *scaling        // what it does to a ReplicaSet; nil if that keeps its replicas
	from        history.Version // of a ReplicaSet, that it was written from
	publication *publication    // of the Endpoints that it writes; nil if it writes none
	pod         *pod            // that it deletes or claims, as the process has it; nil if never shown
	claim       claim           // of callClaim

	update     *update         // what it updates; nil if it is another call
	writes     bool            // of callLease: it writes the lease
	effectSeen bool            // of callDelete: the pod left the view before the answer
	made       history.Version // of callCreate: the pod's first version
	unsaid     bool            // of callStatus: it is the first to report a failure, or should be
}

// callVerb is what a call does, as far as checks care.
type callVerb int

const (
	callOther  callVerb = iota
	callLease           // anything about leases: not work
	callCreate          // creates a pod for an owner
	callDelete          // deletes a pod
	callClaim           // writes a pod: adopts or releases it
	callStatus          // writes an owner
	callRead            // reads an owner live
)

const leaseResource = "leases.coordination.k8s.io"

// napMax is how long a refused call may sleep in the client at the most before
// it is taken to be given up.
const napMax = time.Minute

func newProcess(name string, facts *decoder, setting Settings) *process {
	return &process{
		name:    name,
		view:    newView(facts),
		ledgers: map[types.UID]*ledger{},

		rollouts:     map[types.UID]*rollout{},
		publications: map[objectName]*publication{},

		rest:    setting.rest(),
		drain:   setting.drain(),
		naps:    map[string]time.Duration{},
		adopted: map[types.UID]types.UID{},

		deleting: map[types.UID]*ledger{},
		reads:    map[types.UID]liveRead{},
	}
}

// ledger returns the account with an owner, opening it if need be.
func (p *process) ledger(owner types.UID) *ledger {
	l := p.ledgers[owner]
	if l == nil {
		l = newLedger(p, owner)
		p.ledgers[owner] = l
	}
	return l
}

// send takes in a request other than a watch.
func (p *process) send(r *history.Request, seq int64, at time.Duration) *call {
	c := &call{process: p, id: r.ID, seq: seq, at: at}
	c.key = r.Verb + " " + r.Resource + " " + r.Subresource + " " + r.Namespace + "/" + r.Name
	if r.Resource == leaseResource {
		c.verb = callLease
		if r.Object != nil {
			c.writes = true
			p.tenure.asks(r, seq, at)
		}
		return c
	}
	p.rouse(at)
	if at-p.sweptAt > memory {
		p.view.forget(at - memory)
		p.sweptAt = at
	}
	p.working++
	p.lastAt = at
	p.classify(c, r)
	c.update = p.updateOf(r)
	if c.ledger != nil {
		c.ledger.send(c)
		c.item = item{process: p, uid: c.ledger.uid}
	}
	delete(p.naps, c.key)
	return c
}

// classify finds out what a call does, to what and for whom.
func (p *process) classify(c *call, r *history.Request) {
	switch kind := kindByResource(r.Resource); {
	case r.Resource == deploymentResource || r.Resource == setResource && p.isRollout(r):
		p.classifyRollout(c, r)
	case r.Resource == endpointsResource && r.IsWrite():
		p.classifyPublication(c, r)
	case r.Resource == podResource && r.Verb == "create" && r.Object != nil:
		if ref := r.Object.ControllerRef(); ref != nil && kindByName(ref.Kind) != nil {
			c.verb, c.ledger = callCreate, p.ledger(ref.UID)
			c.key += string(ref.UID)
		}
	case r.Resource == podResource && r.Verb == "delete":
		c.verb = callDelete
		c.pod = p.view.lookup(r.Namespace, r.Name, r.PreconditionUID)
		if c.pod != nil {
			c.ledger = p.managerOf(c.pod)
		}
	case r.Resource == podResource && (r.Verb == "patch" || r.Verb == "update"):
		c.verb = callClaim
		c.pod = p.view.lookup(r.Namespace, r.Name, "")
		// The API server refuses what cannot be read here, so nothing comes of it.
		c.claim, _ = claimOf(r)
		if c.claim.owner != "" {
			c.ledger = p.ledger(c.claim.owner)
		}
	case kind != nil && (r.Verb == "update" || r.Verb == "patch"):
		c.verb = callStatus
		if o := p.view.ownerNamed(r.Resource, r.Namespace, r.Name); o != nil {
			c.ledger = p.ledger(o.UID)
			c.unsaid, c.ledger.knew.unsaid = c.ledger.knew.unsaid, false
		}
	case kind != nil && r.Verb == "get":
		c.verb = callRead
	}
}

// managerOf returns the ledger of the owner for which the process deletes a
// pod: the one that controls it, or did so of late, in the view.
func (p *process) managerOf(target *pod) *ledger {
	if uid, ok := p.adopted[target.UID]; ok {
		return p.ledger(uid)
	}
	seen := p.view.sightings(target.UID)
	for i := len(seen) - 1; i >= 0; i-- {
		if seen[i].pod.managed() {
			return p.ledger(seen[i].pod.controller.UID)
		}
	}
	return nil
}

// rouse ends an idle spell, if there was one. Whatever the process decided
// before it, it has acted upon or given up.
func (p *process) rouse(at time.Duration) {
	if p.working > 0 || at-p.lastAt < p.rest || p.napping(at) {
		return
	}
	p.spells++
	p.rousedAt = at
	p.view.forget(at - lag)
	maps.DeleteFunc(p.rollouts, func(uid types.UID, r *rollout) bool { return p.view.deployments[uid] == nil && r.working == 0 })
	maps.DeleteFunc(p.publications, func(_ objectName, known *publication) bool { return known.forgotten(at) })
	for uid, l := range p.ledgers {
		l.idle(at)
		if l.closed {
			delete(p.ledgers, uid)
		}
	}
}

// silent takes a time off those in which the process may have been idle.
func (p *process) silent(lasted, at time.Duration) {
	later := func(since *time.Duration) { *since = min(*since+lasted, at) }
	later(&p.lastAt)
	for _, l := range p.ledgers {
		later(&l.creditAt)
	}
	for _, r := range p.rollouts {
		later(&r.lastAt)
	}
	for _, known := range p.publications {
		later(&known.lastAt)
	}
}

// napping reports whether some call may be asleep in the client.
func (p *process) napping(at time.Duration) bool {
	for key, since := range p.naps {
		if at-since > napMax {
			delete(p.naps, key)
		}
	}
	return len(p.naps) > 0
}

// settle takes in the answer to a call.
func (p *process) settle(c *call, r *history.Response, at time.Duration) {
	if c.verb == callLease {
		if !r.OK() && r.Code != 404 && r.Code != 409 {
			p.leaseFailed, p.leaseLost = true, at
		}
		return
	}
	p.working--
	p.lastAt = at
	if repeats(r) {
		p.naps[c.key] = at
	}
	switch {
	case c.verb == callClaim && r.OK() && c.pod != nil && c.claim.adopts:
		p.adopted[c.pod.UID] = c.claim.owner
	case c.verb == callRead && r.OK() && r.Object != nil:
		p.reads[r.Object.UID] = liveRead{sent: c.seq, terminating: r.Object.Terminating(), version: r.Object.Version}
		p.learnLive(r.Object, at)
	}
	switch {
	case c.ledger != nil:
		c.ledger.settle(c, r, at)
	case c.rollout != nil:
		p.settleRollout(c, r, at)
	case c.publication != nil:
		c.publication.settled(r, at)
	}
}

// repeats reports whether the client library repeats a call by itself after this
// answer: it does after a 429 or a 5xx that carries Retry-After.
func repeats(r *history.Response) bool {
	return r.RetryAfter != nil && (r.Code == 429 || r.Code >= 500)
}

// gone reports whether its process does not know the object of an item any more.
func (i item) gone() bool {
	view := i.process.view
	if i.service != (objectName{}) {
		return view.names[i.service] == ""
	}
	return view.owners[i.uid] == nil && view.deployments[i.uid] == nil
}

// String is how evidence names the object of an item.
func (i item) String() string {
	switch {
	case i.service != objectName{}:
		return "Service " + i.service.namespace + "/" + i.service.name
	case i.process.view.deployments[i.uid] != nil:
		return i.process.view.deployments[i.uid].String()
	case i.process.view.owners[i.uid] != nil:
		return i.process.view.owners[i.uid].String()
	}
	return "owner " + string(i.uid)
}

// ref points evidence to the object of an item.
func (i item) ref() *history.Ref {
	switch {
	case i.service != objectName{}:
		return &history.Ref{Resource: i.service.resource, Namespace: i.service.namespace, Name: i.service.name}
	case i.process.view.deployments[i.uid] != nil:
		return &i.process.view.deployments[i.uid].Ref
	case i.process.view.owners[i.uid] != nil:
		return &i.process.view.owners[i.uid].Ref
	}
	return &history.Ref{UID: i.uid}
}
