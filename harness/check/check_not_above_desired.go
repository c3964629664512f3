package check

import (
	"fmt"
	"slices"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// notAboveDesiredCheck is the row of not-above-desired in All.
var notAboveDesiredCheck = Check{
	ID:               "not-above-desired",
	Guarantee:        "By the controller's own hand an owner never has more active pods than it asks for, counting those that the controller knew of.",
	Contract:         "ReplicaSet 7, 8",
	Property:         Safety,
	AllowedBehaviors: []string{"expired-expectations", "terminating-pods-not-counted", "lost-response", "client-retries", "create-after-deletion"},
	New:              newNotAboveDesiredChecker,
}

// notAboveDesiredChecker: at each create, the pods that the process knows of and
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
type notAboveDesiredChecker struct{ findings }

func newNotAboveDesiredChecker(s Settings) Checker {
	return &notAboveDesiredChecker{findings{upstream: s.Upstream}}
}

func (checker *notAboveDesiredChecker) Observe(m *Model, _ *history.Record) {
	c := m.sent
	if c == nil || c.verb != callCreatePod || !c.ownerState.everCached() {
		return
	}
	checker.exercised++
	state := c.ownerState
	desired := state.createBound.sinceIdle.high
	pods := state.podCounts.replicas + state.creates.outstanding() - state.noLongerAwaited() - state.gained.total()
	if pods <= desired {
		checker.checkExpired(m, state, pods, desired)
		return
	}
	checker.addViolation(func() Evidence {
		return Evidence{
			Summary: fmt.Sprintf("%s: %s created pod %d of %d: it knew of %d active ones and had %d creates on the way; in truth %d were active",
				state.name(), state.process.name, pods, desired, state.podCounts.replicas, state.creates.outstanding()-1, m.committed.podCountsOf(state.uid).replicas),
			Expected: fmt.Sprintf("at most %d active pods", desired),
			Object:   state.ref(),
			At:       m.now,
			Records:  append(state.creates.records(), m.seq),
		}
	})
}

// checkExpired judges a create by those, too, that the process gave up waiting for.
func (checker *notAboveDesiredChecker) checkExpired(m *Model, state *ownerState, pods, desired int) {
	lapsed := state.expiredCreates()
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
				state.name(), state.process.name, pods+len(lapsed), desired, len(lapsed), m.committed.podCountsOf(state.uid).replicas),
			Expected: fmt.Sprintf("at most %d active pods", desired),
			Object:   state.ref(),
			At:       m.now,
			Records:  append(made[:min(len(made), evidenceMax)], m.seq),
		}
	}
	if o := state.owner(); o != nil && o.kind.name == controllerKind {
		checker.addKnownViolation(latePods, say)
		return
	}
	checker.addViolation(say)
}
