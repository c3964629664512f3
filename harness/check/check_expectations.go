package check

import (
	"fmt"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// expectationsCheck demands that a controller observes its creates and deletes of an owner's pods
// before it sends further ones. It examines each create and delete of a pod by a controller under
// test.
//
// It skips a pod whose owner was never in the cache of the process. After the expectations timeout
// (5 minutes), a process may stop waiting for the effect of a create or delete. The check then
// ignores that create or delete.
var expectationsCheck = Check{
	ID:               "expectations",
	Guarantee:        "After creates or deletes of pods for an owner, a controller sends no further ones until it has observed them, or until 5 minutes have passed. It deletes no pod a second time before it has observed the first delete.",
	Contract:         "ReplicaSet 2",
	Property:         Safety,
	Scope:            contractOf(kube.Expectations),
	ExercisedWhen:    "An owner or one of its pods changes in the cache while the owner has the wrong number of pods, and the process still waits for the effect of earlier creates or deletes.",
	AllowedBehaviors: []string{"expired-expectations", "terminating-pods-not-counted", "lost-response", "client-retries", "delete-without-precondition", "create-after-deletion"},
	New:              newExpectationsChecker,
}

// expectationsChecker reports creates and deletes of pods that the process sends before it has
// observed its earlier ones. The process has observed a create or delete when its informer cache
// shows the effect.
//
// A permitted call is a create or delete that the process may still send. The process gets new
// permitted calls when it has observed all its earlier calls for the owner. Their number is the
// difference between the pods in the cache and spec.replicas. Each create or delete that the
// process sends uses up one permitted call. If it fails, the process may send one more.
//
// Unused permitted calls expire when the process is idle and has observed all its creates and
// deletes. A process is idle if it has sent nothing for a while and awaits no response.
type expectationsChecker struct {
	findings
	states perOwnerState[permittedCalls] // the permitted calls of each process for each owner
}

// permittedCalls contains the number of creates and deletes that a process may still send
// for one owner.
type permittedCalls struct {
	creates int // the number of creates that the process may still send
	deletes int // the number of deletes that the process may still send
	// active and controlledOrAdoptable contain the lowest and the highest number of pods that the
	// cache contained in the last one to two seconds. The checker records these numbers only while
	// the process may decide on new creates and deletes, or may do so as soon as it gets the
	// responses to its calls. It may then not have handled the last events yet.
	//
	// active counts the owner's replicas, and limits the permitted creates. Its lowest number
	// leaves out pods that the process may not have counted (possiblyUncounted).
	// controlledOrAdoptable counts all active pods that the owner controls or may adopt, and limits
	// the permitted deletes.
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
			} // with outstanding calls, a stall may have interrupted a batch, and the process may send the rest
			permitted.decide(state, m.sent, m.processTime)
		}
	}
	for _, t := range m.changedOwners {
		permitted := checker.states.of(t.ownerState)
		if t.expired != nil {
			permitted.count(t.ownerState, *t.expired, m.processTime)
		}
		permitted.decide(t.ownerState, nil, m.processTime)
		if t.creates.outstanding()+t.deletes.outstanding() > 0 && t.countDiffers() {
			checker.exercised++ // the change enqueued the owner, but the controller must wait for its outstanding calls
		}
	}
	for _, c := range m.possiblyLost {
		checker.states.of(c.ownerState).restore(c.verb)
	}
	for _, c := range m.possiblyLost {
		checker.states.of(c.ownerState).decide(c.ownerState, nil, m.processTime)
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

// countDiffers reports whether the cached number of the owner's pods differs from its
// spec.replicas. A controller then has to act. The result is false if the owner is terminating or
// not in the cache.
func (state *ownerState) countDiffers() bool {
	o := state.owner()
	return o != nil && !o.Terminating && o.Replicas != state.podCounts.replicas
}

// decide permits the creates or deletes that the cache justifies now. It permits nothing while the
// process waits for the effect of earlier creates or deletes for the owner, or for their responses.
//
// The argument current is the request that the process sends at this moment, or nil. This request
// does not count as an earlier create or delete.
func (permitted *permittedCalls) decide(state *ownerState, current *call, at time.Duration) {
	deciding := state.mayDecide(current, at)
	if !deciding && !state.awaitsOnlyResponses() {
		return
	}
	counts := state.podCounts
	if state.owner() == nil { // the model counts pods only for an owner in the cache
		counts.replicas = state.process.view.activePodsOf(state.uid)
	}
	if !deciding {
		permitted.active.record(at, counts.replicas)
		permitted.controlledOrAdoptable.record(at, counts.controlledOrAdoptable())
		return
	}
	permitted.count(state, counts, at)
	missing := state.createBound.recent.bounds(at).high - permitted.active.bounds(at).low
	excess := permitted.controlledOrAdoptable.bounds(at).high - state.deleteBound.recent.bounds(at).low
	permitted.creates = max(permitted.creates, min(missing, burstLimit))
	permitted.deletes = max(permitted.deletes, min(excess, burstLimit))
}

// count records pod counts of the cache on which the process may decide.
func (permitted *permittedCalls) count(state *ownerState, counts podCounts, at time.Duration) {
	permitted.active.record(at, max(0, counts.replicas-state.possiblyUncounted()))
	permitted.active.record(at, counts.replicas)
	permitted.controlledOrAdoptable.record(at, counts.controlledOrAdoptable())
}

// restore permits one more create or delete, because a request with the given verb failed.
func (permitted *permittedCalls) restore(verb callVerb) {
	switch verb {
	case callCreatePod:
		permitted.creates++
	case callDeletePod:
		permitted.deletes++
	}
}

// send checks a create or delete of a pod that the process sends. A process may send a limited
// number of these requests before it has observed the results of earlier ones. send reports a
// violation if this number is exceeded, or if the process deletes the same pod again.
func (checker *expectationsChecker) send(m *Model, c *call) {
	state := c.ownerState
	permitted := checker.states.of(state)
	permitted.decide(state, c, m.processTime)
	var verbName string
	var left *int
	switch c.verb {
	case callCreatePod:
		verbName, left = "create", &permitted.creates
	case callDeletePod:
		verbName, left = "delete", &permitted.deletes
		if before := state.deletes.unobserved[c.pod.UID]; before != nil {
			checker.deletedTwice(m, c, before)
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
			Summary: fmt.Sprintf("%s: %s sent a %s before it had observed its earlier creates and deletes: %d active pods in its cache, %d wanted; %d earlier creates and %d earlier deletes not yet observed",
				state.name(), state.process.name, verbName, state.podCounts.replicas, state.createBound.recent.value.high, state.creates.outstandingExcept(c), state.deletes.outstandingExcept(c)),
			Expected: "no further create or delete until the process has observed its earlier ones",
			Object:   state.ref(),
			At:       m.now,
			Records:  append(append(state.creates.records(), state.deletes.records()...), m.seq),
		}
	})
}

// deletedTwice reports a second delete of the same pod. The process sent this delete before its
// cache showed the effect of the first delete.
func (checker *expectationsChecker) deletedTwice(m *Model, c, before *call) {
	checker.addViolation(func() Evidence {
		return Evidence{
			Summary: fmt.Sprintf("%s: %s deleted %s again before it observed the first delete",
				c.ownerState.name(), c.process.name, podName(c.pod)),
			Expected: "one delete of each pod",
			Object:   podRef(c.pod),
			At:       m.now,
			Records:  []int64{before.seq, m.seq},
		}
	})
}
