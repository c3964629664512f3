package check

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// slowStartCheck is the row of slow-start in All.
var slowStartCheck = Check{
	ID:               "slow-start",
	Guarantee:        "Creates of one owner go out in batches of 1, 2, 4, and so on, each only after the one before has succeeded, and from 1 again after a failure.",
	Contract:         "ReplicaSet 8",
	Property:         Safety,
	AllowedBehaviors: []string{"client-retries", "client-rate-limit"},
	New:              newSlowStartChecker,
}

// slowStartChecker: the creates in flight are at most one more than those that
// have succeeded since the sync began.
//
// The history does not show where a sync begins. It certainly does after a
// failure, once the calls of the failed batch are sent, and after an idle spell
// unless creates were still to come: a subject may be starved in mid-sync.
// A refusal after which the client repeats the call by itself is no failure yet:
// the call counts as in flight until it is sent again. A refusal because the
// namespace is terminating is none either: nothing is to be tried again there.
type slowStartChecker struct {
	findings
	states perOwnerState[slowStartState]
}

// slowStartState is what is known of the creates of one owner.
type slowStartState struct {
	idlePeriod    int
	needed        int // how many creates the sync, and those before it in the spell, are for
	succeeded     int // since a sync may have begun
	inFlight      map[uint64]bool
	clientRetries int // refused, and perhaps to be sent again by the client
	// unsentOfFailedBatch is how many calls of a failed batch may still be sent; doomed is
	// those of it that were in flight when it failed.
	unsentOfFailedBatch int
	inFlightAtFailure   map[uint64]bool
}

func newSlowStartChecker(Settings) Checker { return &slowStartChecker{} }

func (checker *slowStartChecker) Observe(m *Model, _ *history.Record) {
	switch {
	case m.sent != nil && m.sent.verb == callCreatePod:
		checker.send(m, m.sent)
	case m.answered != nil && m.answered.verb == callCreatePod:
		checker.states.of(m.answered.ownerState).answer(m.answered)
	}
}

func (checker *slowStartChecker) send(m *Model, c *call) {
	s := checker.states.of(c.ownerState)
	missing := c.ownerState.createBound.recent.bounds(m.processTime).high - c.ownerState.podCounts.replicas
	if s.inFlight == nil || s.idlePeriod != c.process.idlePeriods && s.succeeded >= s.needed {
		*s = slowStartState{needed: min(missing, burstLimit), inFlight: map[uint64]bool{}, inFlightAtFailure: map[uint64]bool{}}
	}
	s.idlePeriod = c.process.idlePeriods
	if missing > 1 {
		checker.exercised++ // it could have sent several at once
	}
	switch sent := s.succeeded + len(s.inFlight); {
	case s.needed <= 0: // it may be the first of a sync that follows a failure
		s.needed = min(missing, burstLimit)
	case sent >= s.needed: // and what is more than a sync was for, that of another one
		s.needed = sent + min(c.ownerState.createBound.recent.value.high-c.ownerState.podCounts.replicas, burstLimit)
	}
	switch {
	case s.clientRetries > 0:
		s.clientRetries--
	case s.unsentOfFailedBatch > 0:
		s.unsentOfFailedBatch--
		return
	}
	s.inFlight[c.id] = true
	if n := len(s.inFlight) + s.clientRetries; n > 1+s.succeeded {
		checker.addViolation(func() Evidence {
			return Evidence{
				Summary: fmt.Sprintf("%s: %d creates in flight when %d had succeeded since %s began to create",
					c.ownerState.name(), n, s.succeeded, c.process.name),
				Expected: fmt.Sprintf("at most %d in flight", 1+s.succeeded),
				Object:   c.ownerState.ref(),
				At:       m.now,
				Records:  append(c.ownerState.creates.records(), m.seq),
			}
		})
	}
}

func (s *slowStartState) answer(answered *answeredCall) {
	switch failed := !answered.response.OK() && answered.response.Cause != string(corev1.NamespaceTerminatingCause); {
	case !failed && !s.inFlightAtFailure[answered.id]:
		s.succeeded++
	case failed && isRetriedByClient(answered.response) && s.inFlight[answered.id]:
		s.clientRetries++
	case failed && isRetriedByClient(answered.response):
		s.unsentOfFailedBatch++
	case failed && s.inFlight[answered.id]:
		s.fail()
	}
	delete(s.inFlight, answered.id)
	delete(s.inFlightAtFailure, answered.id)
}

// fail ends the batch that is in flight. Its size was at most one more than had
// succeeded; what of it has not been sent may still come. What succeeds of it
// says nothing for the next sync.
func (s *slowStartState) fail() {
	s.unsentOfFailedBatch = max(0, min(burstLimit, 1+s.succeeded)-len(s.inFlight)) + s.clientRetries
	s.needed, s.succeeded, s.clientRetries = 0, 0, 0
	s.inFlightAtFailure, s.inFlight = s.inFlight, map[uint64]bool{}
}
