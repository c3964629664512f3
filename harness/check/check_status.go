package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// statusCheck demands that a written status matches a recent version of the owner and its pods in
// the controller's cache. It examines each status write of a ReplicaSet or ReplicationController.
//
// In a status write that is not based on the latest cached version of the object, it examines only
// observedGeneration.
var statusCheck = Check{
	ID:               "status",
	Guarantee:        "The counts, observedGeneration and condition ReplicaFailure with its reason in the status of a ReplicaSet or ReplicationController match a cached version of the owner and its pods that the controller may have acted on. The lastTransitionTime of a condition changes only with the condition's status.",
	Contract:         "ReplicaSet 13, 14",
	Property:         Safety,
	Scope:            contractOf(kube.OwnsPods),
	ExercisedWhen:    "The subject writes the status of a ReplicaSet or ReplicationController, based on the latest version in its cache.",
	AllowedBehaviors: []string{"whole-second-timestamps", "overlapping-selectors", "replica-failure-message", "observed-generation-order"},
	New:              newStatusChecker,
}

// statusChecker reports a status with a count that is too low or too high according to the caches.
// It also reports a wrong condition ReplicaFailure.
//
// An orphan that the owner may adopt may or may not be counted. A pod is available after it has
// been ready for minReadySeconds. If a delete fails because the pod no longer exists, this is no
// ReplicaFailure.
//
// In a status write that is not based on the latest cached version, the checker examines only
// observedGeneration. The API server rejects such a write. After a conflict, the controller reads the
// owner from the API server and writes the same status again.
//
// Known upstream issue namesake-status: a process reads a new owner from the API server. It then
// writes the status of a cached owner with the same name to this new owner. The new owner may reach
// the cache between the read and the write.
type statusChecker struct {
	findings
	// written contains the last status write of each process, by the owner's name.
	written map[*process]map[objectName]ownerStatusWrite
}

// ownerStatusWrite is a status that a process wrote to an owner. The time at is on the clock of the process.
type ownerStatusWrite struct {
	owner              types.UID
	observedGeneration int64
	at                 time.Duration
}

// conflictRetryMax is the longest time from a status write to a deleted owner to its repetition. A
// conflict and a read of the new owner are in between.
const conflictRetryMax = 5 * time.Second

func newStatusChecker(s Settings) Checker {
	return &statusChecker{findings: findings{upstream: s.Upstream}, written: map[*process]map[objectName]ownerStatusWrite{}}
}

func (checker *statusChecker) Observe(m *Model, r *history.Record) {
	if r.Process != nil {
		maps.DeleteFunc(checker.written, func(p *process, _ map[objectName]ownerStatusWrite) bool { return p.ended })
	}
	c := m.sent
	if c == nil || c.verb != callStatus || c.ownerState == nil || r.Request.Subresource != "status" || r.Request.Object == nil {
		return
	}
	var written struct { // the checker needs no other field
		Status objects.OwnerStatusBody `json:"status"`
	}
	if err := objects.Unmarshal(r.Request.Object.Body, &written); err != nil {
		return // the API server rejects a status that cannot be decoded
	}
	state, o := c.ownerState, c.ownerState.owner()
	continued := checker.continuesFormer(c.process, &r.Request.Object.Ref, written.Status.ObservedGeneration, m.processTime)
	if c.writesOtherOwner(r.Request) {
		checker.addKnownViolation(namesakeStatus, func() Evidence {
			return m.evidenceOf(&r.Request.Object.Ref, fmt.Sprintf("%s: %s wrote the status of this owner to another object with the same name, UID %s, which was never in the cache of the process",
				state.name(), c.process.name, r.Request.Object.UID), "a status write only to the owner that the status describes")
		})
		return
	}
	reported := c.reportedOwner(r.Request)
	if reported == nil {
		checker.checkTransitions(m, c, nil, written.Status.Conditions)
		checker.checkLaterWrite(m, c, r.Request, written.Status.ObservedGeneration, continued)
		return
	}
	counts, failing := &written.Status.OwnerStatus, written.Status.Failing()
	checker.exercised++
	if c.mustReportFailure && !failing {
		checker.addViolation(func() Evidence {
			return m.evidenceOf(&o.Ref, fmt.Sprintf("%s: %s wrote a status without condition ReplicaFailure", o, c.process.name),
				"condition ReplicaFailure, because creates or deletes have failed since the previous status write")
		})
	}
	var wrong, expected []string
	for _, field := range state.statusFieldBounds(counts, m.start.Time.Add(m.now)) {
		if field.written < field.low || field.written > field.high {
			wrong = append(wrong, fmt.Sprintf("status.%s %d", field.field, field.written))
			expected = append(expected, fmt.Sprintf("status.%s %s", field.field, rangeText(field.low, field.high)))
		}
	}
	if len(wrong) > 0 {
		checker.addViolation(func() Evidence {
			return m.evidenceOf(&o.Ref, fmt.Sprintf("%s: %s wrote %s", o, c.process.name, strings.Join(wrong, ", ")),
				strings.Join(expected, ", ")+", according to the cache of the process")
		})
	}
	checker.checkTransitions(m, c, reported.Conditions, written.Status.Conditions)
	if failing {
		checker.checkFailureReason(m, c, written.Status.FailureReason())
	}
	bounds := &state.statusBounds
	if failing && bounds.failing.sinceIdle.high == 0 && bounds.deletesNotFound.total() > 0 && bounds.failures.total() == 0 && state.creates.inFlightExcept(c)+state.deletes.inFlightExcept(c) == 0 {
		checker.addViolation(func() Evidence {
			return m.evidenceOf(&o.Ref, fmt.Sprintf("%s: %s wrote condition ReplicaFailure=True", o, c.process.name),
				"no condition ReplicaFailure, because only deletes of pods that were already gone failed")
		})
	}
}

// checkLaterWrite reports a status whose observedGeneration is above every generation of the owner
// that was ever in the cache. The write may follow a conflict. The controller then has read a newer
// version from the API server, but it has acted on the version in its cache.
//
// It skips an owner that has just appeared in the cache. The sync may have begun with an earlier owner
// of the same name. The parameter continued says that the process certainly wrote the status of an
// earlier owner just before.
func (checker *statusChecker) checkLaterWrite(m *Model, c *call, r *history.Request, observed int64, continued bool) {
	state := c.ownerState
	newest := state.statusBounds.newestGeneration
	if !state.synced || r.Object.UID != state.uid || observed <= newest || m.processTime <= state.statusBounds.firstCached+lag {
		return
	}
	report := checker.addViolation
	if continued {
		report = func(evidence func() Evidence) { checker.addKnownViolation(namesakeStatus, evidence) }
	}
	report(func() Evidence {
		return m.evidenceOf(state.ref(), fmt.Sprintf("%s: %s wrote status.observedGeneration %d", state.name(), c.process.name, observed),
			fmt.Sprintf("at most %d, the newest generation that was in the cache of the process", newest))
	})
}

// continuesFormer records a status write to an owner. It reports whether the process has just tried to
// write a status of the same generation to another owner, which had this name before.
func (checker *statusChecker) continuesFormer(p *process, owner *history.Ref, generation int64, at time.Duration) bool {
	if checker.written[p] == nil {
		checker.written[p] = map[objectName]ownerStatusWrite{}
	}
	name := nameOf(*owner)
	former, found := checker.written[p][name]
	checker.written[p][name] = ownerStatusWrite{owner.UID, generation, at}
	return found && former.owner != owner.UID && former.observedGeneration == generation && at-former.at <= conflictRetryMax
}

// checkTransitions reports a condition without lastTransitionTime. It also reports a condition whose
// lastTransitionTime has changed, although its status has not. The argument cached has the conditions in
// the cached version on which the write is based. It is nil if this version is unknown.
func (checker *statusChecker) checkTransitions(m *Model, c *call, cached, written []objects.ConditionWithTime) {
	for _, after := range written {
		expected := "the time at which the condition's status changed"
		if i := slices.IndexFunc(cached, func(before objects.ConditionWithTime) bool {
			return before.Type == after.Type && before.Status == after.Status
		}); i >= 0 {
			if cached[i].LastTransitionTime.Equal(after.LastTransitionTime) {
				continue
			}
			expected = fmt.Sprintf("%s, because the condition's status has not changed", transitionText(cached[i].LastTransitionTime))
		} else if !after.LastTransitionTime.IsZero() {
			continue
		}
		checker.addViolation(func() Evidence {
			return m.evidenceOf(c.ownerState.ref(), fmt.Sprintf("%s: %s wrote condition %s=%s with lastTransitionTime %s",
				c.ownerState.name(), c.process.name, after.Type, after.Status, transitionText(after.LastTransitionTime)), expected)
		})
	}
}

// transitionText returns the text of a lastTransitionTime, or null for the zero time.
func transitionText(t time.Time) string {
	if t.IsZero() {
		return "null"
	}
	return t.UTC().Format(time.RFC3339)
}

// checkFailureReason reports a condition ReplicaFailure without a valid reason. It also reports a new
// condition whose reason does not fit. The reason is FailedCreate after a failed create, and
// FailedDelete after a failed delete.
func (checker *statusChecker) checkFailureReason(m *Model, c *call, reason string) {
	state := c.ownerState
	bounds := &state.statusBounds
	var want string
	switch {
	case reason != failedCreate && reason != failedDelete:
		checker.addViolation(func() Evidence {
			return m.evidenceOf(state.ref(), fmt.Sprintf("%s: %s wrote condition ReplicaFailure=True with the reason %q", state.name(), c.process.name, reason),
				"reason FailedCreate or FailedDelete")
		})
		return
	case bounds.failing.sinceIdle.high > 0: // the condition is not new
		return
	case reason == failedCreate && bounds.deleteFailed && !bounds.createFailed && state.creates.inFlightExcept(c) == 0:
		want = failedDelete
	case reason == failedDelete && bounds.createFailed && !bounds.deleteFailed && state.deletes.inFlightExcept(c) == 0:
		want = failedCreate
	default:
		return
	}
	checker.addViolation(func() Evidence {
		return m.evidenceOf(state.ref(), fmt.Sprintf("%s: %s wrote condition ReplicaFailure=True (%s)", state.name(), c.process.name, reason),
			fmt.Sprintf("reason %s, because only such requests of the process have failed", want))
	})
}

// These are the reasons of the condition ReplicaFailure (contract ReplicaSet 13).
const (
	failedCreate = "FailedCreate"
	failedDelete = "FailedDelete"
)

// writesOtherOwner reports whether a status write changes another owner than the cached one with
// the same name.
//
// The two owners have different UIDs. The process must have read the other owner from the API
// server. Its cache must never have contained that owner. A cache that has reached the version in
// the write contained that owner, possibly only for an instant, before the owner was deleted.
func (c *call) writesOtherOwner(r *history.Request) bool {
	p, uid := c.process, r.Object.UID
	_, read := p.liveReads[uid]
	return c.ownerState.synced && read && uid != c.ownerState.uid && p.view.owners[uid] == nil && p.ownerStates[uid] == nil &&
		p.view.reachedVersion[r.Resource] < r.Object.Version
}

// mostAvailable returns the highest number of pods that the process may report as available.
//
// It counts the cached pods that have been ready for minReadySeconds. It also counts pods that
// became unready recently. The process may have decided on the status before it received this
// change.
func (state *ownerState) mostAvailable(now time.Time) int {
	ready := state.statusBounds.ready.sinceIdle.high
	minReady := time.Duration(state.statusBounds.minReady.sinceIdle.low) * time.Second
	if minReady == 0 {
		return ready
	}
	available := state.statusBounds.becameUnready.total()
	for _, p := range state.process.view.controlled[state.uid] {
		if p.Active && p.Ready && !p.ReadySince.Add(minReady-tolerance).After(now) {
			available++
		}
	}
	return min(ready, available)
}

// statusFieldBounds returns each number in a written status, with the lowest and the highest
// allowed value of this number.
func (state *ownerState) statusFieldBounds(s *objects.OwnerStatus, now time.Time) []fieldBounds {
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
