package check

import (
	"fmt"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// expectationsCheck is the row of expectations in All.
var expectationsCheck = Check{
	ID:               "expectations",
	Guarantee:        "Until it has observed what it created and deleted for an owner, a controller creates and deletes no more for it than it had decided to before.",
	Contract:         "ReplicaSet 2",
	Property:         Safety,
	AllowedBehaviors: []int{9, 10, 12, 13, 17, 23, 24},
	New:              newExpectations,
}

// expectationsJudge: what a process sends for an owner was called for by some
// view that it had at a moment when it had observed all that it did before.
//
// At each such moment the view allows so many creates, or deletes. Allowances
// last until they are used or the process is idle and has observed all that it did;
// a call that fails gives its place back.
type expectationsJudge struct {
	findings
	states perLedger[allowance]
}

// allowance is how much a process may still send for one owner.
type allowance struct {
	creates int
	deletes int
	// Numbers of pods in the view, at the moments of late when a decision could
	// be taken: those that count for certain, and those that may count.
	active    lately
	claimable lately
}

func newExpectations(Settings) Checker { return &expectationsJudge{} }

func (j *expectationsJudge) Observe(m *Model, _ *history.Record) {
	if m.roused != nil {
		for _, l := range m.roused.ledgers {
			s := j.states.of(l)
			if l.creates.pending(m.sent)+l.deletes.pending(m.sent) == 0 {
				s.creates, s.deletes = 0, 0
			} // else the machine may have stood still in the middle of a batch
			s.decide(l, m.sent, m.at)
		}
	}
	for _, t := range m.touched {
		j.states.of(t.ledger).decide(t.ledger, nil, m.at)
		if t.creates.outstanding()+t.deletes.outstanding() > 0 && t.differs() {
			j.tested++ // it was woken, and not to act
		}
	}
	if a := m.answered; a != nil && a.ledger != nil {
		s := j.states.of(a.ledger)
		if !a.response.OK() {
			s.giveBack(a.verb)
		}
		s.decide(a.ledger, nil, m.at)
	}
	if c := m.sent; c != nil && c.ledger != nil && c.ledger.shown() {
		j.send(m, c)
	}
}

// differs reports whether the view has another number of pods than is wanted.
func (l *ledger) differs() bool {
	o := l.owner()
	return o != nil && !o.terminating && o.replicas != l.tally.replicas
}

// decide adds what the view calls for, if a decision can be taken now.
func (s *allowance) decide(l *ledger, except *call, at time.Duration) {
	if !l.settled(except) {
		return
	}
	s.active.note(at, max(0, l.tally.replicas-l.unnoticed()))
	s.active.note(at, l.tally.replicas)
	s.claimable.note(at, l.tally.claimable())
	missing := l.ceiling.recent.bounds(at).high - s.active.bounds(at).low
	excess := s.claimable.bounds(at).high - l.floor.recent.bounds(at).low
	s.creates = max(s.creates, min(missing, burstLimit))
	s.deletes = max(s.deletes, min(excess, burstLimit))
}

func (s *allowance) giveBack(verb callVerb) {
	switch verb {
	case callCreate:
		s.creates++
	case callDelete:
		s.deletes++
	}
}

func (j *expectationsJudge) send(m *Model, c *call) {
	l := c.ledger
	s := j.states.of(l)
	s.decide(l, c, m.at)
	var doing string
	var left *int
	switch c.verb {
	case callCreate:
		doing, left = "create", &s.creates
	case callDelete:
		doing, left = "delete", &s.deletes
		if again := l.deletes.unseen[c.pod.UID]; again != nil {
			j.deletedTwice(m, c, again)
			return
		}
	default:
		return
	}
	s.active.clear()
	s.claimable.clear()
	if *left > 0 {
		*left--
		return
	}
	j.violate(func() Evidence {
		return Evidence{
			Summary: fmt.Sprintf("%s: %s sent a %s that no view called for, with %d creates and %d deletes not observed, %d pods active in its view",
				l.name(), l.process.name, doing, l.creates.outstanding(), l.deletes.outstanding(), l.tally.replicas),
			Expected: "first to observe what it did before",
			Object:   l.ref(),
			At:       m.now,
			Records:  append(append(l.creates.records(), l.deletes.records()...), m.seq),
		}
	})
}

func (j *expectationsJudge) deletedTwice(m *Model, c, before *call) {
	j.violate(func() Evidence {
		return Evidence{
			Summary: fmt.Sprintf("%s: %s deleted pod %s again before it had observed that it was deleted",
				c.ledger.name(), c.process.name, c.pod.Name),
			Expected: "each pod deleted once",
			Object:   podIn(c.pod),
			At:       m.now,
			Records:  []int64{before.seq, m.seq},
		}
	})
}
