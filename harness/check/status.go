package check

import (
	"fmt"
	"net/http"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// This file judges what a controller says of an owner and its pods.

// knowledge is between which bounds lies what a process may know of an owner and
// its pods when it reports them from the version of the owner that it was told
// last: since it was told of that, and for the lag before. Whoever writes from it
// has not begun before, however long its calls hang.
type knowledge struct {
	version    history.Version // the highest that the process was told of
	since      time.Duration   // when it was told of that first
	generation sinceIdle
	replicas   sinceIdle
	labeled    sinceIdle
	ready      sinceIdle
	leaving    sinceIdle
	orphans    sinceIdle
	minReady   sinceIdle // in seconds
	failing    sinceIdle // 1 where the status said that pods could not be made or deleted
	// unready counts pods that were ready and are so no more, or not the owner's;
	// failures, calls for its pods that failed; missed, deletes of pods that were
	// gone already.
	unready  countSinceIdle
	failures countSinceIdle
	missed   countSinceIdle
	// unsaid: a call for its pods has failed for good since the process last reported,
	// when the status did not say so yet.
	unsaid bool
}

// look takes in what has become of the owner, nil if it is gone, and its pods.
func (k *knowledge) look(o *owner, before, now tally, replaced bool, at time.Duration) {
	if o != nil && o.Version > k.version { // a list may go back, and come again
		k.version, k.since = o.Version, at
		k.renew(at)
	}
	if replaced { // on the way a cache may have some of the old pods and some of the new
		k.note(tally{}, at)
		k.note(before.plus(now), at)
		k.unready.add(at, min(before.ready, now.ready)) // each may have been another's
	}
	k.note(now, at)
	k.unready.add(at, max(0, before.ready-now.ready))
	if o == nil {
		return
	}
	k.generation.note(at, int(o.generation))
	k.minReady.note(at, int(o.minReady/time.Second))
	failing := 0
	if o.failing {
		failing = 1
	}
	k.failing.note(at, failing)
}

func (k *knowledge) note(t tally, at time.Duration) {
	k.replicas.note(at, t.replicas)
	k.labeled.note(at, t.labeled)
	k.ready.note(at, t.ready)
	k.leaving.note(at, t.leaving)
	k.orphans.note(at, t.orphans)
}

// manage takes in the answer to a create or delete, and whether it was certainly for
// this owner.
func (k *knowledge) manage(ok, certain bool, r *history.Response, at time.Duration) {
	if ok {
		return
	}
	k.failures.add(at, 1)
	// That a namespace is terminating is no failure (trap 18), and of what got no
	// answer at all one may think what one likes.
	if certain && r.Code >= 400 && r.Code != http.StatusForbidden && r.Code != http.StatusNotFound && !repeats(r) && k.failing.whole.high == 0 {
		k.unsaid = true
	}
}

// renew begins anew with what may be known now.
func (k *knowledge) renew(at time.Duration) {
	for _, s := range []*sinceIdle{
		&k.generation, &k.replicas, &k.labeled, &k.ready, &k.leaving, &k.orphans, &k.minReady, &k.failing,
	} {
		s.idle(at)
	}
	k.unready.idle(at)
	k.failures.idle(at)
	k.missed.idle(at)
}

// plus adds up what two tallies say of pods that are reported.
func (t tally) plus(other tally) tally {
	t.replicas += other.replicas
	t.labeled += other.labeled
	t.ready += other.ready
	t.leaving += other.leaving
	t.orphans += other.orphans
	return t
}

// statusJudge: each number that a process writes into an owner's status lies
// between the lowest and the highest that it may have known. Orphans that it may
// adopt count as they like. A pod is available no earlier than its own time and
// minReadySeconds say, and that a pod to delete was gone is no failure.
//
// A status that is not written from the version that the process was told last is
// refused, and judged by nobody. One that is written from a version that was read
// live repeats an older one, after a conflict.
//
// One that is written onto an owner that the process was never shown, and knows from a
// live read alone, is that of a namesake (trap 43).
type statusJudge struct{ findings }

func newStatus(s Settings) Checker { return &statusJudge{findings: findings{upstream: s.Upstream}} }

func (j *statusJudge) Observe(m *Model, r *history.Record) {
	c := m.sent
	if c == nil || c.verb != callStatus || c.ledger == nil || r.Request.Subresource != "status" || r.Request.Object == nil {
		return
	}
	l, o := c.ledger, c.ledger.owner()
	if c.hitsNamesake(r.Request) {
		j.violateKnown(namesakeStatus, func() Evidence {
			return m.evidenceOf(&r.Request.Object.Ref, fmt.Sprintf("%s: %s wrote its status onto another of its name, with the UID %s, that it was never shown",
				l.name(), c.process.name, r.Request.Object.UID), "each status written onto what it is of")
		})
		return
	}
	if c.reports(r.Request) == nil {
		return
	}
	var written struct{ Status statusBody } // nothing else of it counts
	if err := unmarshalSome(r.Request.Object.Body, &written); err != nil {
		return // the API server refuses what cannot be read
	}
	said, failing := &written.Status.ownerStatus, written.Status.failing()
	j.tested++
	if c.unsaid && !failing {
		j.violate(func() Evidence {
			return m.evidenceOf(&o.Ref, fmt.Sprintf("%s: %s wrote a status without the condition ReplicaFailure", o, c.process.name),
				"the condition, for creates or deletes have failed since its last report")
		})
	}
	for _, claim := range l.claims(said, m.start.Time.Add(m.now)) {
		if claim.said >= claim.low && claim.said <= claim.high {
			continue
		}
		j.violate(func() Evidence {
			return m.evidenceOf(&o.Ref, fmt.Sprintf("%s: %s wrote status.%s %d", o, c.process.name, claim.field, claim.said),
				fmt.Sprintf("from %d to %d, by what it knew", claim.low, claim.high))
		})
	}
	k := &l.knew
	if failing && k.failing.whole.high == 0 && k.missed.total() > 0 && k.failures.total() == 0 && l.creates.awaits(c)+l.deletes.awaits(c) == 0 {
		j.violate(func() Evidence {
			return m.evidenceOf(&o.Ref, fmt.Sprintf("%s: %s wrote the condition ReplicaFailure", o, c.process.name),
				"none, for all that could not be deleted was gone already")
		})
	}
}

// hitsNamesake reports whether a status goes to another owner than the process has had
// under that name, one that it has read live and not been shown.
func (c *call) hitsNamesake(r *history.Request) bool {
	p, uid := c.process, r.Object.UID
	_, read := p.reads[uid]
	return c.ledger.ready && read && uid != c.ledger.uid && p.view.owners[uid] == nil && p.ledgers[uid] == nil
}

// reports returns the owner on which a call reports by what the process was told of it
// last; nil if it does something else, or reports what it cannot be judged by.
func (c *call) reports(r *history.Request) *owner {
	if c.verb != callStatus || c.ledger == nil || r.Subresource != "status" || r.Object == nil || !c.ledger.ready {
		return nil
	}
	o := c.ledger.owner()
	if r.Object.Version != o.Version || o.Version == c.process.reads[c.ledger.uid].version {
		return nil
	}
	return o
}

// statusClaim is a number in a status, and between which bounds it may lie.
type statusClaim struct {
	field     string
	said      int
	low, high int
}

// claims are the numbers that a status says which is written at some time.
func (l *ledger) claims(s *ownerStatus, now time.Time) []statusClaim {
	k := &l.knew
	adoptable := k.orphans.whole.high
	fewestAvailable := k.ready.whole.low
	if k.minReady.whole.high > 0 {
		fewestAvailable = 0
	}
	claims := []statusClaim{
		{"observedGeneration", int(s.ObservedGeneration), k.generation.whole.low, k.generation.whole.high},
		{"replicas", s.Replicas, k.replicas.whole.low, k.replicas.whole.high + adoptable},
		{"fullyLabeledReplicas", s.FullyLabeledReplicas, k.labeled.whole.low, k.labeled.whole.high + adoptable},
		{"readyReplicas", s.ReadyReplicas, k.ready.whole.low, k.ready.whole.high + adoptable},
		{"availableReplicas", s.AvailableReplicas, fewestAvailable, l.mostAvailable(now) + adoptable},
	}
	if s.TerminatingReplicas != nil {
		claims = append(claims, statusClaim{"terminatingReplicas", *s.TerminatingReplicas, k.leaving.whole.low, k.leaving.whole.high})
	}
	return claims
}

// mostAvailable is how many pods of the owner the process may take to be
// available at some time: those that have been ready for long enough, and as many
// more as have ceased to be ready in the time from which its report may date.
func (l *ledger) mostAvailable(now time.Time) int {
	ready := l.knew.ready.whole.high
	minReady := time.Duration(l.knew.minReady.whole.low) * time.Second
	if minReady == 0 {
		return ready
	}
	available := l.knew.unready.total()
	for _, p := range l.process.view.controlled[l.uid] {
		if p.active && p.ready && !p.readySince.Add(minReady-tolerance).After(now) {
			available++
		}
	}
	return min(ready, available)
}
