package check

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// This file judges how many pods a controller asks for at once.

// burstLimitJudge: outstanding creates, and deletes, stay within the limit.
type burstLimitJudge struct{ findings }

func newBurstLimit(Settings) Checker { return &burstLimitJudge{} }

func (j *burstLimitJudge) Observe(m *Model, _ *history.Record) {
	c := m.sent
	if c == nil || c.ledger == nil {
		return
	}
	l := c.ledger
	var account *account
	var doing string
	allowed, wanted := burstLimit, 0
	switch c.verb {
	case callCreate:
		account, doing = &l.creates, "created"
		wanted = l.ceiling.recent.bounds(m.at).high - l.tally.replicas
		allowed += l.credit // what it took for its own, it waits for no more
	case callDelete:
		account, doing = &l.deletes, "deleted"
		wanted = l.tally.claimable() - l.floor.recent.bounds(m.at).low
	default:
		return
	}
	if wanted > burstLimit {
		j.tested++
	}
	if n := account.outstanding(); n > allowed {
		j.violate(func() Evidence {
			return Evidence{
				Summary:  fmt.Sprintf("%s: %d pods being %s by %s, and not observed", l.name(), n, doing, l.process.name),
				Expected: fmt.Sprintf("at most %d at a time", burstLimit),
				Object:   l.ref(),
				At:       m.now,
				Records:  append(account.records(), m.seq),
			}
		})
	}
}

// slowStartJudge: the creates in flight are at most one more than those that
// have succeeded since the sync began.
//
// The history does not show where a sync begins. It certainly does after a
// failure, once the calls of the failed batch are sent, and after an idle spell
// unless creates were still to come: a subject may be starved in mid-sync.
// A refusal after which the client repeats the call by itself is no failure yet:
// the call counts as in flight until it is sent again. A refusal because the
// namespace is terminating is none either: nothing is to be tried again there.
type slowStartJudge struct {
	findings
	states perLedger[slowStart]
}

// slowStart is what is known of the creates of one owner.
type slowStart struct {
	spell     int
	goal      int // how many creates the sync, and those before it in the spell, are for
	succeeded int // since a sync may have begun
	inFlight  map[uint64]bool
	repeating int // refused, and perhaps to be sent again by the client
	// siblings is how many calls of a failed batch may still be sent; doomed is
	// those of it that were in flight when it failed.
	siblings int
	doomed   map[uint64]bool
}

func newSlowStart(Settings) Checker { return &slowStartJudge{} }

func (j *slowStartJudge) Observe(m *Model, _ *history.Record) {
	switch {
	case m.sent != nil && m.sent.verb == callCreate:
		j.send(m, m.sent)
	case m.answered != nil && m.answered.verb == callCreate:
		j.states.of(m.answered.ledger).answer(m.answered)
	}
}

func (j *slowStartJudge) send(m *Model, c *call) {
	s := j.states.of(c.ledger)
	missing := c.ledger.ceiling.recent.bounds(m.at).high - c.ledger.tally.replicas
	if s.inFlight == nil || s.spell != c.process.spells && s.succeeded >= s.goal {
		*s = slowStart{goal: min(missing, burstLimit), inFlight: map[uint64]bool{}, doomed: map[uint64]bool{}}
	}
	s.spell = c.process.spells
	if missing > 1 {
		j.tested++ // it could have sent several at once
	}
	switch sent := s.succeeded + len(s.inFlight); {
	case s.goal <= 0: // it may be the first of a sync that follows a failure
		s.goal = min(missing, burstLimit)
	case sent >= s.goal: // and what is more than a sync was for, that of another one
		s.goal = sent + min(c.ledger.ceiling.recent.value.high-c.ledger.tally.replicas, burstLimit)
	}
	switch {
	case s.repeating > 0:
		s.repeating--
	case s.siblings > 0:
		s.siblings--
		return
	}
	s.inFlight[c.id] = true
	if n := len(s.inFlight) + s.repeating; n > 1+s.succeeded {
		j.violate(func() Evidence {
			return Evidence{
				Summary: fmt.Sprintf("%s: %d creates in flight when %d had succeeded since %s began to create",
					c.ledger.name(), n, s.succeeded, c.process.name),
				Expected: fmt.Sprintf("at most %d in flight", 1+s.succeeded),
				Object:   c.ledger.ref(),
				At:       m.now,
				Records:  append(c.ledger.creates.records(), m.seq),
			}
		})
	}
}

func (s *slowStart) answer(a *answer) {
	switch failed := !a.response.OK() && a.response.Cause != string(corev1.NamespaceTerminatingCause); {
	case !failed && !s.doomed[a.id]:
		s.succeeded++
	case failed && repeats(a.response) && s.inFlight[a.id]:
		s.repeating++
	case failed && repeats(a.response):
		s.siblings++
	case failed && s.inFlight[a.id]:
		s.fail()
	}
	delete(s.inFlight, a.id)
	delete(s.doomed, a.id)
}

// fail ends the batch that is in flight. Its size was at most one more than had
// succeeded; what of it has not been sent may still come. What succeeds of it
// says nothing for the next sync.
func (s *slowStart) fail() {
	s.siblings = max(0, min(burstLimit, 1+s.succeeded)-len(s.inFlight)) + s.repeating
	s.goal, s.succeeded, s.repeating = 0, 0, 0
	s.doomed, s.inFlight = s.inFlight, map[uint64]bool{}
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
