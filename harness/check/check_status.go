package check

import (
	"fmt"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// statusCheck is the row of status in All.
var statusCheck = Check{
	ID:               "status",
	Guarantee:        "What a controller writes into the status of a ReplicaSet or ReplicationController was true of it by what the controller knew of its pods and its generation.",
	Contract:         "ReplicaSet 13, 14",
	Property:         Safety,
	AllowedBehaviors: []int{22, 25, 26, 27},
	New:              newStatus,
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
