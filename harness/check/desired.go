package check

import (
	"fmt"
	"slices"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// This file judges where a controller's creates and deletes leave the number of
// an owner's active pods, by what the controller knew.

// notAboveDesiredJudge: at each create, the pods that the process knows of and
// those that it has on the way are no more than the owner asked for at any time
// since the process was last idle.
//
// Pods that came to the owner in that time by other hands are left out, since
// the decision may be older than their news: pods of unknown outcome, adopted
// ones, those of a former leader.
//
// Pods that the process was told it made are on the way however long its watch takes
// to show them. A ReplicaSet's controller waits for what it wrote (contract ReplicaSet
// 1); that upstream's for ReplicationControllers does not is known.
type notAboveDesiredJudge struct{ findings }

func newNotAboveDesired(s Settings) Checker {
	return &notAboveDesiredJudge{findings{upstream: s.Upstream}}
}

func (j *notAboveDesiredJudge) Observe(m *Model, _ *history.Record) {
	c := m.sent
	if c == nil || c.verb != callCreate || !c.ledger.shown() {
		return
	}
	j.tested++
	l := c.ledger
	desired := l.ceiling.whole.high
	pods := l.tally.replicas + l.creates.outstanding() - l.mistaken() - l.joined.total()
	if pods <= desired {
		j.again(m, l, pods, desired)
		return
	}
	j.violate(func() Evidence {
		return Evidence{
			Summary: fmt.Sprintf("%s: %s created pod %d of %d: it knew of %d active ones and had %d creates on the way; in truth %d were active",
				l.name(), l.process.name, pods, desired, l.tally.replicas, l.creates.outstanding()-1, m.truth.tally(l.uid).replicas),
			Expected: fmt.Sprintf("at most %d active pods", desired),
			Object:   l.ref(),
			At:       m.now,
			Records:  append(l.creates.records(), m.seq),
		}
	})
}

// again judges a create by those, too, that the process gave up waiting for.
func (j *notAboveDesiredJudge) again(m *Model, l *ledger, pods, desired int) {
	lapsed := l.lapsed()
	if pods+len(lapsed) <= desired {
		return
	}
	say := func() Evidence {
		var made []int64
		for _, c := range lapsed {
			made = append(made, c.seq)
		}
		slices.Sort(made)
		return Evidence{
			Summary: fmt.Sprintf("%s: %s created pod %d of %d, %d of them made so long ago that it waits for them no more, and not in its view yet; in truth %d were active",
				l.name(), l.process.name, pods+len(lapsed), desired, len(lapsed), m.truth.tally(l.uid).replicas),
			Expected: fmt.Sprintf("at most %d active pods", desired),
			Object:   l.ref(),
			At:       m.now,
			Records:  append(made[:min(len(made), evidenceMax)], m.seq),
		}
	}
	if o := l.owner(); o != nil && o.kind.name == controllerKind {
		j.violateKnown(latePods, say)
		return
	}
	j.violate(say)
}

// notBelowDesiredJudge: at each delete of a pod that the process takes to be
// active, those that it may take to be left are no fewer than the owner asked
// for at any time since the process was last idle.
//
// Pods that the owner lost in that time by other hands count as left, since the
// decision may be older than their news.
type notBelowDesiredJudge struct{ findings }

func newNotBelowDesired(Settings) Checker { return &notBelowDesiredJudge{} }

func (j *notBelowDesiredJudge) Observe(m *Model, _ *history.Record) {
	c := m.sent
	if c == nil || c.verb != callDelete || c.ledger == nil || !c.ledger.shown() || !c.hitsActive() {
		return
	}
	j.tested++
	l := c.ledger
	going := len(l.deletes.unseen)
	for _, other := range l.deletes.inFlight {
		if other.hitsActive() {
			going++
		}
	}
	desired := l.floor.whole.low
	remaining := l.tally.claimable() - going + l.left.total()
	if remaining >= desired {
		return
	}
	j.violate(func() Evidence {
		e := Evidence{
			Summary: fmt.Sprintf("%s: %s deleted pod %s, which left %d of %d active by what it knew; in truth %d were active",
				l.name(), l.process.name, c.pod.Name, remaining, desired, m.truth.tally(l.uid).replicas),
			Expected: fmt.Sprintf("at least %d active pods left", desired),
			Object:   podIn(c.pod),
			At:       m.now,
			Records:  append(l.deletes.records(), m.seq),
		}
		if desired == unlimited {
			e.Summary = fmt.Sprintf("%s, which is being deleted or gone: %s deleted its pod %s", l.name(), l.process.name, c.pod.Name)
			e.Expected = "its pods left to the garbage collector"
		}
		return e
	})
}

// hitsActive reports whether a delete is of a pod that the view shows active.
func (c *call) hitsActive() bool {
	p := c.process.view.pods[c.pod.UID]
	return p != nil && p.active
}
