package check

import (
	"fmt"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// burstLimitCheck is the row of burst-limit in All.
var burstLimitCheck = Check{
	ID:               "burst-limit",
	Guarantee:        "For one owner, at most 500 creates and 500 deletes are ever outstanding: sent, and neither refused nor observed.",
	Contract:         "ReplicaSet 8, 9",
	Property:         Safety,
	AllowedBehaviors: []string{"lost-response", "client-retries", "expired-expectations"},
	New:              newBurstLimitChecker,
}

// burstLimitChecker: outstanding creates, and deletes, stay within the limit.
type burstLimitChecker struct{ findings }

func newBurstLimitChecker(Settings) Checker { return &burstLimitChecker{} }

func (checker *burstLimitChecker) Observe(m *Model, _ *history.Record) {
	c := m.sent
	if c == nil || c.ownerState == nil {
		return
	}
	state := c.ownerState
	var calls *outstandingCalls
	var doing string
	allowed, wanted := burstLimit, 0
	switch c.verb {
	case callCreatePod:
		calls, doing = &state.creates, "created"
		wanted = state.createBound.recent.bounds(m.processTime).high - state.podCounts.replicas
		allowed += state.excessObserved // what it took for its own, it waits for no more
	case callDeletePod:
		calls, doing = &state.deletes, "deleted"
		wanted = state.podCounts.controlledOrAdoptable() - state.deleteBound.recent.bounds(m.processTime).low
	default:
		return
	}
	if wanted > burstLimit {
		checker.exercised++
	}
	if n := calls.outstanding(); n > allowed {
		checker.addViolation(func() Evidence {
			return Evidence{
				Summary:  fmt.Sprintf("%s: %d pods being %s by %s, and not observed", state.name(), n, doing, state.process.name),
				Expected: fmt.Sprintf("at most %d at a time", burstLimit),
				Object:   state.ref(),
				At:       m.now,
				Records:  append(calls.records(), m.seq),
			}
		})
	}
}
