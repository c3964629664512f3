package check

import (
	"fmt"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// notBelowDesiredCheck is the row of not-below-desired in All.
var notBelowDesiredCheck = Check{
	ID:               "not-below-desired",
	Guarantee:        "By the controller's own hand an owner never has fewer active pods than it asks for, counting those that the controller took to be active.",
	Contract:         "ReplicaSet 7, 9",
	Property:         Safety,
	AllowedBehaviors: []string{"terminating-pods-not-counted", "external-disruptions", "expired-expectations", "delete-without-precondition", "overlapping-selectors"},
	New:              newNotBelowDesiredChecker,
}

// notBelowDesiredChecker: at each delete of a pod that the process takes to be
// active, those that it may take to be left are no fewer than the owner asked
// for at any time since the process was last idle.
//
// Pods that the owner lost in that time by other hands count as left, since the
// decision may be older than their news.
type notBelowDesiredChecker struct{ findings }

func newNotBelowDesiredChecker(Settings) Checker { return &notBelowDesiredChecker{} }

func (checker *notBelowDesiredChecker) Observe(m *Model, _ *history.Record) {
	c := m.sent
	if c == nil || c.verb != callDeletePod || c.ownerState == nil || !c.ownerState.everCached() || !c.deletesActivePod() {
		return
	}
	checker.exercised++
	state := c.ownerState
	going := len(state.deletes.unobserved)
	for _, other := range state.deletes.inFlight {
		if other.deletesActivePod() {
			going++
		}
	}
	desired := state.deleteBound.sinceIdle.low
	remaining := state.podCounts.controlledOrAdoptable() - going + state.lost.total()
	if remaining >= desired {
		return
	}
	checker.addViolation(func() Evidence {
		e := Evidence{
			Summary: fmt.Sprintf("%s: %s deleted pod %s, which left %d of %d active by what it knew; in truth %d were active",
				state.name(), state.process.name, c.pod.Name, remaining, desired, m.committed.podCountsOf(state.uid).replicas),
			Expected: fmt.Sprintf("at least %d active pods left", desired),
			Object:   podRef(c.pod),
			At:       m.now,
			Records:  append(state.deletes.records(), m.seq),
		}
		if desired == unlimited {
			e.Summary = fmt.Sprintf("%s, which is being deleted or gone: %s deleted its pod %s", state.name(), state.process.name, c.pod.Name)
			e.Expected = "its pods left to the garbage collector"
		}
		return e
	})
}
