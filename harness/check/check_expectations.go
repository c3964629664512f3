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
	AllowedBehaviors: []string{"expired-expectations", "terminating-pods-not-counted", "lost-response", "client-retries", "delete-without-precondition", "create-after-deletion"},
	New:              newExpectationsChecker,
}

// expectationsChecker: what a process sends for an owner was called for by some
// view that it had at a moment when it had observed all that it did before.
//
// At each such moment the view allows so many creates, or deletes. Allowances
// last until they are used or the process is idle and has observed all that it did;
// a call that fails gives its place back.
type expectationsChecker struct {
	findings
	states perOwnerState[permittedCalls]
}

// permittedCalls is how much a process may still send for one owner.
type permittedCalls struct {
	creates int
	deletes int
	// Numbers of pods in the view, at the moments of late when a decision could
	// be taken: those that count for certain, and those that may count.
	active                recentWindow
	controlledOrAdoptable recentWindow
}

func newExpectationsChecker(Settings) Checker { return &expectationsChecker{} }

func (checker *expectationsChecker) Observe(m *Model, _ *history.Record) {
	if m.endedIdle != nil {
		for _, state := range m.endedIdle.ownerStates {
			permitted := checker.states.of(state)
			if state.creates.outstandingExcept(m.sent)+state.deletes.outstandingExcept(m.sent) == 0 {
				permitted.creates, permitted.deletes = 0, 0
			} // else the machine may have stood still in the middle of a batch
			permitted.decide(state, m.sent, m.processTime)
		}
	}
	for _, t := range m.changedOwners {
		checker.states.of(t.ownerState).decide(t.ownerState, nil, m.processTime)
		if t.creates.outstanding()+t.deletes.outstanding() > 0 && t.countDiffers() {
			checker.exercised++ // it was woken, and not to act
		}
	}
	if answered := m.answered; answered != nil && answered.ownerState != nil {
		permitted := checker.states.of(answered.ownerState)
		if !answered.response.OK() {
			permitted.restore(answered.verb)
		}
		permitted.decide(answered.ownerState, nil, m.processTime)
	}
	if c := m.sent; c != nil && c.ownerState != nil && c.ownerState.everCached() {
		checker.send(m, c)
	}
}

// countDiffers reports whether the view has another number of pods than is wanted.
func (state *ownerState) countDiffers() bool {
	o := state.owner()
	return o != nil && !o.terminating && o.replicas != state.podCounts.replicas
}

// decide adds what the view calls for, if a decision can be taken now.
func (permitted *permittedCalls) decide(state *ownerState, except *call, at time.Duration) {
	if !state.expectationsSatisfied(except) {
		return
	}
	permitted.active.record(at, max(0, state.podCounts.replicas-state.possiblyUncounted()))
	permitted.active.record(at, state.podCounts.replicas)
	permitted.controlledOrAdoptable.record(at, state.podCounts.controlledOrAdoptable())
	missing := state.createBound.recent.bounds(at).high - permitted.active.bounds(at).low
	excess := permitted.controlledOrAdoptable.bounds(at).high - state.deleteBound.recent.bounds(at).low
	permitted.creates = max(permitted.creates, min(missing, burstLimit))
	permitted.deletes = max(permitted.deletes, min(excess, burstLimit))
}

func (permitted *permittedCalls) restore(verb callVerb) {
	switch verb {
	case callCreatePod:
		permitted.creates++
	case callDeletePod:
		permitted.deletes++
	}
}

func (checker *expectationsChecker) send(m *Model, c *call) {
	state := c.ownerState
	permitted := checker.states.of(state)
	permitted.decide(state, c, m.processTime)
	var doing string
	var left *int
	switch c.verb {
	case callCreatePod:
		doing, left = "create", &permitted.creates
	case callDeletePod:
		doing, left = "delete", &permitted.deletes
		if again := state.deletes.unobserved[c.pod.UID]; again != nil {
			checker.deletedTwice(m, c, again)
			return
		}
	default:
		return
	}
	permitted.active.clear()
	permitted.controlledOrAdoptable.clear()
	if *left > 0 {
		*left--
		return
	}
	checker.addViolation(func() Evidence {
		return Evidence{
			Summary: fmt.Sprintf("%s: %s sent a %s that no view called for, with %d creates and %d deletes not observed, %d pods active in its view",
				state.name(), state.process.name, doing, state.creates.outstanding(), state.deletes.outstanding(), state.podCounts.replicas),
			Expected: "first to observe what it did before",
			Object:   state.ref(),
			At:       m.now,
			Records:  append(append(state.creates.records(), state.deletes.records()...), m.seq),
		}
	})
}

func (checker *expectationsChecker) deletedTwice(m *Model, c, before *call) {
	checker.addViolation(func() Evidence {
		return Evidence{
			Summary: fmt.Sprintf("%s: %s deleted pod %s again before it had observed that it was deleted",
				c.ownerState.name(), c.process.name, c.pod.Name),
			Expected: "each pod deleted once",
			Object:   podRef(c.pod),
			At:       m.now,
			Records:  []int64{before.seq, m.seq},
		}
	})
}
