package check

import (
	"maps"
	"math"
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// perLedger is what a judge keeps for each ledger. Closed ledgers are swept out
// when the number has doubled.
type perLedger[T any] struct {
	states  map[*ledger]*T
	sweepAt int
}

// of returns the state kept for a ledger, a zero one at first.
func (p *perLedger[T]) of(l *ledger) *T {
	if s := p.states[l]; s != nil {
		return s
	}
	if p.states == nil {
		p.states = map[*ledger]*T{}
	}
	if len(p.states) >= p.sweepAt {
		for old := range p.states {
			if old.closed || old.process.ended {
				delete(p.states, old)
			}
		}
		p.sweepAt = 2*len(p.states) + 64
	}
	p.states[l] = new(T)
	return p.states[l]
}

const (
	// burstLimit is how many pods a controller may have created, or deleted, for
	// one owner without having observed it (contract ReplicaSet 8, 9).
	burstLimit = 500
	// expectationsTimeout is after how long a controller may give up waiting to
	// observe what it did (contract ReplicaSet 2). It counts from its decision,
	// which the history does not show: some time before the first call.
	expectationsTimeout = 5*time.Minute - 10*time.Second
	// unlimited is the floor of an owner of which nothing may be deleted.
	unlimited = math.MaxInt32
)

func newLedger(p *process, uid types.UID) *ledger {
	return &ledger{
		process: p,
		uid:     uid,
		creates: newAccount(),
		deletes: newAccount(),
		early:   map[types.UID]bool{},
	}
}

func newAccount() account {
	return account{
		inFlight: map[uint64]*call{}, unseen: map[types.UID]*call{}, oldest: math.MaxInt64, lapsed: map[types.UID]*call{},
	}
}

// outstanding is how many calls' effect the process cannot have observed.
func (a *account) outstanding() int { return len(a.inFlight) + len(a.unseen) }

func (a *account) await(pod types.UID, c *call) {
	a.unseen[pod] = c
	a.oldest = min(a.oldest, c.at)
}

// expire gives up on what has been waited for too long (trap 17).
func (a *account) expire(at time.Duration) {
	if a.oldest > at-expectationsTimeout {
		return
	}
	a.oldest = math.MaxInt64
	for pod, c := range a.unseen {
		if c.at <= at-expectationsTimeout {
			delete(a.unseen, pod)
			a.lapsed[pod] = c
		} else {
			a.oldest = min(a.oldest, c.at)
		}
	}
}

// pending is how many calls' effect the process cannot have observed, the given
// one left out.
func (a *account) pending(except *call) int { return a.awaits(except) + len(a.unseen) }

// records returns where some of the outstanding calls stand in the history.
func (a *account) records() []int64 {
	const some = 3
	var seqs []int64
	for c := range maps.Values(a.unseen) {
		seqs = append(seqs, c.seq)
	}
	for c := range maps.Values(a.inFlight) {
		seqs = append(seqs, c.seq)
	}
	slices.Sort(seqs)
	return seqs[:min(some, len(seqs))]
}

// owner returns the owner as the process has it, or nil.
func (l *ledger) owner() *owner { return l.process.view.owners[l.uid] }

// shown reports whether the process has had the owner in view at all.
func (l *ledger) shown() bool { return l.ceiling.whole.some }

// name is how evidence names the owner.
func (l *ledger) name() string {
	if o := l.owner(); o != nil {
		return o.String()
	}
	return "owner " + string(l.uid)
}

// ref points evidence to the owner.
func (l *ledger) ref() *history.Ref {
	if o := l.owner(); o != nil {
		return &o.Ref
	}
	return &history.Ref{UID: l.uid}
}

// settled reports whether the process may take a new decision about the owner:
// it has observed all that it did, except for the given call.
func (l *ledger) settled(except *call) bool {
	return l.ready &&
		l.creates.awaits(except) == 0 && l.deletes.awaits(except) == 0 &&
		len(l.creates.unseen) <= l.credit && len(l.deletes.unseen) == 0
}

// awaits counts the calls in flight, except for the given one.
func (a *account) awaits(except *call) int {
	n := len(a.inFlight)
	if except != nil && a.inFlight[except.id] == except {
		n--
	}
	return n
}

// mistaken is how many of the pods that it made and has not been shown the
// process may have stopped waiting for.
func (l *ledger) mistaken() int {
	return min(len(l.creates.unseen), max(0, l.credit-len(l.early)))
}

// unnoticed is how many pods in view the process may have decided without: it
// took others for the last that it waited for.
func (l *ledger) unnoticed() int { return max(0, l.credit-len(l.creates.unseen)) }

// look takes in what has become of the owner in the view.
func (l *ledger) look(t touch, at time.Duration) {
	view, before := l.process.view, l.tally
	o := view.owners[l.uid]
	l.tally = view.tally(l.uid)
	l.forgetCredit(at)
	created := l.arrived(t.arrivals, at)
	if l.ready {
		l.joined.add(at, max(0, l.tally.replicas-before.replicas-created))
		l.left.add(at, max(0, before.claimable()-l.tally.claimable()))
	}
	l.ready = o != nil && view.reached[podResource] > 0
	ceiling, floor := 0, unlimited
	if o == nil { // expectations end with the owner
		clear(l.creates.unseen)
		clear(l.creates.lapsed)
		clear(l.deletes.unseen)
		clear(l.deletes.lapsed)
	} else {
		l.reselect(o)
		l.learn(o.template)
		if !o.terminating {
			ceiling, floor = o.replicas, o.replicas
		}
	}
	l.ceiling.note(at, ceiling)
	l.floor.note(at, floor)
	l.knew.look(o, before, l.tally, view.replaced, at)
}

func (l *ledger) reselect(o *owner) {
	if s := o.selector.String(); s != l.selector {
		l.reselected = l.reselected || l.selector != ""
		l.selector = s
	}
}

// learntMax is how many templates of an owner are remembered: more than a process
// can be behind by.
const learntMax = 16

// learn takes in the owner's template.
func (l *ledger) learn(t *template) {
	if n := len(l.templates); n > 0 && l.templates[n-1] == t {
		return
	}
	l.templates = append(l.templates, t)
	l.templates = l.templates[max(0, len(l.templates)-learntMax):]
}

// claimable is the active pods that the owner controls or may adopt.
func (t tally) claimable() int { return t.controlled + t.orphans }

// arrived takes in pods that are new in the view, and returns how many of them
// the process knew it had made.
func (l *ledger) arrived(pods []types.UID, at time.Duration) (own int) {
	for _, uid := range pods {
		if l.creates.unseen[uid] != nil {
			delete(l.creates.unseen, uid)
			if l.credit == 0 {
				own++
			} else { // it may have decided without this one, and earns the credit again
				l.creditAt = at
			}
			continue
		}
		if !l.ready {
			continue // it begins with these
		}
		l.credit++
		l.creditAt = at
		if len(l.creates.inFlight) > 0 {
			l.early[uid] = true
		}
	}
	return own
}

// departs takes in that the view shows a pod gone that the process deletes.
func (l *ledger) departs(pod types.UID, at time.Duration) {
	delete(l.process.deleting, pod)
	if l.deletes.unseen[pod] != nil {
		delete(l.deletes.unseen, pod)
		l.left.add(at, -1)
		return
	}
	for _, c := range l.deletes.inFlight {
		if c.pod.UID == pod && !c.effectSeen {
			c.effectSeen = true
			l.left.add(at, -1)
			return
		}
	}
}

// forgetCredit drops the credit that no expectation can have used: expectations
// are set when a batch begins, which may be a while before its first call, and
// hold while a call of the batch is asleep in the client.
func (l *ledger) forgetCredit(at time.Duration) {
	if l.creates.outstanding() == 0 && at-l.creditAt > lag && !l.process.napping(at) {
		l.credit = 0
	}
}

// send enters a create or delete that is sent.
func (l *ledger) send(c *call) {
	l.creates.expire(c.at)
	l.deletes.expire(c.at)
	switch c.verb {
	case callCreate:
		l.forgetCredit(c.at)
		l.creates.inFlight[c.id] = c
	case callDelete:
		l.deletes.inFlight[c.id] = c
		if c.hitsActive() {
			l.process.deleting[c.pod.UID] = l
		}
	}
}

// settle enters the answer to a create or delete.
func (l *ledger) settle(c *call, r *history.Response, at time.Duration) {
	l.forgetCredit(at)
	switch c.verb {
	case callCreate:
		delete(l.creates.inFlight, c.id)
		if r.OK() && r.Object != nil {
			l.created(c, r.Object, at)
		}
		if len(l.creates.inFlight) == 0 {
			clear(l.early)
		}
		l.knew.manage(r.OK(), true, r, at)
	case callDelete:
		delete(l.deletes.inFlight, c.id)
		if r.Code == http.StatusNotFound {
			l.knew.missed.add(at, 1)
		}
		l.knew.manage(r.OK() || r.Code == http.StatusNotFound, l.process.view.oneManager(c.pod.UID), r, at)
		switch p := l.process.view.pods[c.pod.UID]; {
		case r.OK() && p != nil && p.active:
			l.deletes.await(c.pod.UID, c)
		case !r.OK() && c.effectSeen: // it was somebody else's doing
			l.left.add(at, 1)
		case !r.OK():
			delete(l.process.deleting, c.pod.UID)
		}
	}
}

// created enters a pod that the process has been told it made.
func (l *ledger) created(c *call, made *history.Object, at time.Duration) {
	view := l.process.view
	switch {
	case l.early[made.UID]:
		delete(l.early, made.UID)
		l.credit = max(0, l.credit-1)
		l.joined.add(at, -1)
	case view.pods[made.UID] != nil || made.Version <= view.reached[podResource]:
	default:
		c.made = made.Version
		l.creates.await(made.UID, c)
	}
}

// caughtUp drops what the process has been shown by now without having been
// told of each: a pod that came and went while it was not watching. It reports
// whether there was such a one.
func (l *ledger) caughtUp() bool {
	before := len(l.creates.unseen)
	maps.DeleteFunc(l.creates.unseen, func(_ types.UID, c *call) bool {
		return c.made <= l.process.view.reached[podResource]
	})
	return len(l.creates.unseen) < before
}

// lapsed returns the creates that the process was told it made, waits for no more, and
// has not been shown for all that: its view of pods has not got so far.
func (l *ledger) lapsed() map[types.UID]*call {
	maps.DeleteFunc(l.creates.lapsed, func(_ types.UID, c *call) bool {
		return c.made <= l.process.view.reached[podResource]
	})
	return l.creates.lapsed
}

// idle says that the process was idle until now.
func (l *ledger) idle(at time.Duration) {
	l.ceiling.idle(at)
	l.floor.idle(at)
	l.joined.idle(at)
	l.left.idle(at)
	l.closed = l.owner() == nil && l.creates.outstanding()+l.deletes.outstanding() == 0
}
