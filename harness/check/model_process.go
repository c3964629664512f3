package check

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// liveRead is what a process got when it asked the API server for an owner.
type liveRead struct {
	sent        int64 // the request's record
	terminating bool
	version     history.Version
}

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
