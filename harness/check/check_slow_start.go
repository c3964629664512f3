package check

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// slowStartCheck demands that a controller creates an owner's pods in batches of 1, 2, 4, 8 and so
// on. It examines each create of a pod for a ReplicaSet or ReplicationController, and the response
// to this create.
//
// A run tests this guarantee only if an owner has at least two pods too few. Otherwise the verdict
// is not-exercised.
var slowStartCheck = Check{
	ID:               "slow-start",
	Guarantee:        "A controller creates the pods of an owner in batches of 1, 2, 4, 8 and so on. Each batch starts only after the previous one has succeeded, and after a failure the next sync starts with 1 again.",
	Contract:         "ReplicaSet 8",
	Property:         Safety,
	Scope:            contractOf(kube.SlowStart),
	ExercisedWhen:    "The subject creates a pod for an owner that has at least two pods too few.",
	AllowedBehaviors: []string{"client-retries", "client-rate-limit"},
	New:              newSlowStartChecker,
}

// slowStartChecker reports more creates in flight for one owner than slow start allows. A create is
// in flight until its response arrives.
//
// If n creates have succeeded since the sync began, at most n + 1 creates may be in flight.
//
// The history does not show when a sync begins. The checker assumes that a new sync begins in two
// cases:
//
//   - A create has failed, and the process has sent the rest of the failed batch.
//   - All creates that the owner needed in the previous sync have succeeded, and the process has
//     been idle since. A process is idle if it has sent nothing for a while.
//
// client-go may resend a rejected create by itself. The rejected create then counts as in flight
// until client-go sends it again. A create that the API server rejects because the namespace is
// terminating counts as successful. The controller does not retry such a create.
type slowStartChecker struct {
	findings
	states perOwnerState[slowStartState] // the creates of each process for each owner
}

// slowStartState contains the creates that a process has sent for one owner in the current sync.
// The comment of slowStartChecker says when the checker assumes that a sync begins.
type slowStartState struct {
	idlePeriod    int             // the value of process.idlePeriods at the latest create; a change shows that the process was idle since
	needed        int             // number of creates that the owner needs in the current sync, including those that have succeeded
	succeeded     int             // number of creates that succeeded in the current sync
	inFlight      map[uint64]bool // IDs of the creates without a response
	clientRetries int             // number of rejected creates that client-go may resend by itself
	// unsentOfFailedBatch is how many creates of a batch the process may still send after one of
	// them failed. inFlightAtFailure contains the request IDs of the creates that were in flight
	// at that time. Their success does not count for the next sync.
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

// send counts a create that the process sends, and reports a violation if too many are in
// flight.
func (checker *slowStartChecker) send(m *Model, c *call) {
	s := checker.states.of(c.ownerState)
	missing := c.ownerState.createBound.recent.bounds(m.processTime).high - c.ownerState.podCounts.replicas
	if s.inFlight == nil || s.idlePeriod != c.process.idlePeriods && s.succeeded >= s.needed {
		*s = slowStartState{needed: min(missing, burstLimit), inFlight: map[uint64]bool{}, inFlightAtFailure: map[uint64]bool{}}
	}
	s.idlePeriod = c.process.idlePeriods
	if missing > 1 {
		checker.exercised++ // the owner lacks several pods, so slow start limits the number of creates
	}
	switch sent := s.succeeded + len(s.inFlight); {
	case s.needed <= 0: // a failure may have reset needed; this is then the first create of the next sync
		s.needed = min(missing, burstLimit)
	case sent >= s.needed: // the process sent more creates than the sync needs, so another sync has begun
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
				Summary: fmt.Sprintf("%s: %s has %d creates in flight after %d successful creates of pods",
					c.ownerState.name(), c.process.name, n, s.succeeded),
				Expected: fmt.Sprintf("at most %d creates in flight", 1+s.succeeded),
				Object:   c.ownerState.ref(),
				At:       m.now,
				Records:  append(c.ownerState.creates.records(), m.seq),
			}
		})
	}
}

// answer updates the counts of the sync after the response to a create: successes, failures and
// creates in flight.
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

// fail ends the current batch after one of its creates failed.
//
// The process may still send the remaining creates of the batch. After n successful creates, a
// batch has at most n + 1 creates. The creates that are in flight now do not count for the next
// sync, even if they succeed.
func (s *slowStartState) fail() {
	s.unsentOfFailedBatch = max(0, min(burstLimit, 1+s.succeeded)-len(s.inFlight)) + s.clientRetries
	s.needed, s.succeeded, s.clientRetries = 0, 0, 0
	s.inFlightAtFailure, s.inFlight = s.inFlight, map[uint64]bool{}
}
