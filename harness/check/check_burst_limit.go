package check

import (
	"fmt"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// burstLimitCheck demands that a controller has at most 500 outstanding creates and 500 outstanding
// deletes of pods for one owner. It examines each create and delete of a pod of a ReplicaSet or
// ReplicationController.
//
// A run tests this guarantee only if an owner has more than 500 pods too few or too many. Otherwise
// the verdict is not-exercised.
var burstLimitCheck = Check{
	ID:               "burst-limit",
	Guarantee:        "A controller has at most 500 outstanding creates and 500 outstanding deletes of pods for one owner. A call is outstanding until it fails or the controller observes its effect.",
	Contract:         "ReplicaSet 8, 9",
	Property:         Safety,
	Scope:            contractOf(kube.BurstLimit),
	ExercisedWhen:    "The subject creates or deletes a pod of an owner that has more than 500 pods too few or too many.",
	AllowedBehaviors: []string{"lost-response", "client-retries", "expired-expectations"},
	New:              newBurstLimitChecker,
}

// burstLimitChecker reports a process with more than 500 outstanding creates, or more than 500
// outstanding deletes, for one owner. A create or delete is outstanding until it fails, or until
// its effect reaches the informer cache of the process.
type burstLimitChecker struct{ findings }

func newBurstLimitChecker(Settings) Checker { return &burstLimitChecker{} }

func (checker *burstLimitChecker) Observe(m *Model, _ *history.Record) {
	c := m.sent
	if c == nil || c.ownerState == nil {
		return
	}
	state := c.ownerState
	var calls *outstandingCalls
	var verb string
	allowed, wanted := burstLimit, 0
	switch c.verb {
	case callCreatePod:
		calls, verb = &state.creates, "creates"
		wanted = state.createBound.recent.bounds(m.processTime).high - state.podCounts.replicas
		// The process may count extra pods, which it did not create, as its own creates. For each
		// of them, it stops waiting for one of its creates, and may send one more.
		allowed += state.extraObserved
	case callDeletePod:
		calls, verb = &state.deletes, "deletes"
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
				Summary:  fmt.Sprintf("%s: %s has %d outstanding %s of pods", state.name(), state.process.name, n, verb),
				Expected: fmt.Sprintf("at most %d outstanding %s", allowed, verb),
				Object:   state.ref(),
				At:       m.now,
				Records:  append(calls.records(), m.seq),
			}
		})
	}
}
