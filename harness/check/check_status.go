package check

import (
	"fmt"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// statusCheck is the row of status in All.
var statusCheck = Check{
	ID:               "status",
	Guarantee:        "What a controller writes into the status of a ReplicaSet or ReplicationController was true of it by what the controller knew of its pods and its generation.",
	Contract:         "ReplicaSet 13, 14",
	Property:         Safety,
	AllowedBehaviors: []string{"whole-second-timestamps", "overlapping-selectors", "replica-failure-message", "observed-generation-order"},
	New:              newStatusChecker,
}

// statusChecker: each number that a process writes into an owner's status lies
// between the lowest and the highest that it may have known. Orphans that it may
// adopt count as they like. A pod is available no earlier than its own time and
// minReadySeconds say, and that a pod to delete was gone is no failure.
//
// A status that is not written from the version that the process was told last is
// refused, and judged by nobody. One that is written from a version that was read
// live repeats an older one, after a conflict.
//
// One that is written onto an owner that the process was never shown, and knows from a
// live read alone, is that of a namesake (trap 43).
type statusChecker struct{ findings }

func newStatusChecker(s Settings) Checker {
	return &statusChecker{findings: findings{upstream: s.Upstream}}
}

func (checker *statusChecker) Observe(m *Model, r *history.Record) {
	c := m.sent
	if c == nil || c.verb != callStatus || c.ownerState == nil || r.Request.Subresource != "status" || r.Request.Object == nil {
		return
	}
	state, o := c.ownerState, c.ownerState.owner()
	if c.writesOtherOwner(r.Request) {
		checker.addKnownViolation(namesakeStatus, func() Evidence {
			return m.evidenceOf(&r.Request.Object.Ref, fmt.Sprintf("%s: %s wrote its status onto another of its name, with the UID %s, that it was never shown",
				state.name(), c.process.name, r.Request.Object.UID), "each status written onto what it is of")
		})
		return
	}
	if c.reportedOwner(r.Request) == nil {
		return
	}
	var written struct{ Status statusBody } // nothing else of it counts
	if err := unmarshalSome(r.Request.Object.Body, &written); err != nil {
		return // the API server refuses what cannot be read
	}
	said, failing := &written.Status.ownerStatus, written.Status.failing()
	checker.exercised++
	if c.mustReportFailure && !failing {
		checker.addViolation(func() Evidence {
			return m.evidenceOf(&o.Ref, fmt.Sprintf("%s: %s wrote a status without the condition ReplicaFailure", o, c.process.name),
				"the condition, for creates or deletes have failed since its last report")
		})
	}
	for _, field := range state.statusFieldBounds(said, m.start.Time.Add(m.now)) {
		if field.written >= field.low && field.written <= field.high {
			continue
		}
		checker.addViolation(func() Evidence {
			return m.evidenceOf(&o.Ref, fmt.Sprintf("%s: %s wrote status.%s %d", o, c.process.name, field.field, field.written),
				fmt.Sprintf("from %d to %d, by what it knew", field.low, field.high))
		})
	}
	bounds := &state.statusBounds
	if failing && bounds.failing.sinceIdle.high == 0 && bounds.deletesNotFound.total() > 0 && bounds.failures.total() == 0 && state.creates.inFlightExcept(c)+state.deletes.inFlightExcept(c) == 0 {
		checker.addViolation(func() Evidence {
			return m.evidenceOf(&o.Ref, fmt.Sprintf("%s: %s wrote the condition ReplicaFailure", o, c.process.name),
				"none, for all that could not be deleted was gone already")
		})
	}
}

// writesOtherOwner reports whether a status goes to another owner than the process has had
// under that name, one that it has read live and not been shown.
func (c *call) writesOtherOwner(r *history.Request) bool {
	p, uid := c.process, r.Object.UID
	_, read := p.liveReads[uid]
	return c.ownerState.synced && read && uid != c.ownerState.uid && p.view.owners[uid] == nil && p.ownerStates[uid] == nil
}

// mostAvailable is how many pods of the owner the process may take to be
// available at some time: those that have been ready for long enough, and as many
// more as have ceased to be ready in the time from which its report may date.
func (state *ownerState) mostAvailable(now time.Time) int {
	ready := state.statusBounds.ready.sinceIdle.high
	minReady := time.Duration(state.statusBounds.minReady.sinceIdle.low) * time.Second
	if minReady == 0 {
		return ready
	}
	available := state.statusBounds.becameUnready.total()
	for _, p := range state.process.view.controlled[state.uid] {
		if p.active && p.ready && !p.readySince.Add(minReady-tolerance).After(now) {
			available++
		}
	}
	return min(ready, available)
}

// statusFieldBounds are the numbers that a status says which is written at some time.
func (state *ownerState) statusFieldBounds(s *ownerStatus, now time.Time) []fieldBounds {
	bounds := &state.statusBounds
	adoptable := bounds.orphans.sinceIdle.high
	fewestAvailable := bounds.ready.sinceIdle.low
	if bounds.minReady.sinceIdle.high > 0 {
		fewestAvailable = 0
	}
	fields := []fieldBounds{
		{"observedGeneration", int(s.ObservedGeneration), bounds.generation.sinceIdle.low, bounds.generation.sinceIdle.high},
		{"replicas", s.Replicas, bounds.replicas.sinceIdle.low, bounds.replicas.sinceIdle.high + adoptable},
		{"fullyLabeledReplicas", s.FullyLabeledReplicas, bounds.fullyLabeled.sinceIdle.low, bounds.fullyLabeled.sinceIdle.high + adoptable},
		{"readyReplicas", s.ReadyReplicas, bounds.ready.sinceIdle.low, bounds.ready.sinceIdle.high + adoptable},
		{"availableReplicas", s.AvailableReplicas, fewestAvailable, state.mostAvailable(now) + adoptable},
	}
	if s.TerminatingReplicas != nil {
		fields = append(fields, fieldBounds{"terminatingReplicas", *s.TerminatingReplicas, bounds.terminatingReplicas.sinceIdle.low, bounds.terminatingReplicas.sinceIdle.high})
	}
	return fields
}
