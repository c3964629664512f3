package check

import (
	"maps"
	"math"
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

const (
	// burstLimit is the maximum number of outstanding creates, or of outstanding deletes, for
	// one owner (contract ReplicaSet 8, 9).
	burstLimit = 500
	// expectationsTimeout is the time after which a controller may stop waiting for its own
	// creates and deletes (contract ReplicaSet 2). The controller measures the time from its
	// decision, which may be some seconds before the first call. The value is therefore below
	// 5 minutes.
	expectationsTimeout = 5*time.Minute - 10*time.Second
	// unlimited is the deleteBound of an owner whose pods must not be deleted.
	unlimited = math.MaxInt32
)

func newOwnerState(p *process, uid types.UID) *ownerState {
	return &ownerState{
		process:              p,
		uid:                  uid,
		creates:              newOutstandingCalls(),
		deletes:              newOutstandingCalls(),
		observedBeforeAnswer: map[types.UID]bool{},
	}
}

func newOutstandingCalls() outstandingCalls {
	return outstandingCalls{
		inFlight: map[uint64]*call{}, unobserved: map[types.UID]*call{}, oldestUnobserved: math.MaxInt64, expired: map[types.UID]*call{},
	}
}

// outstanding counts the calls whose effect the process cannot have observed yet.
func (calls *outstandingCalls) outstanding() int { return len(calls.inFlight) + len(calls.unobserved) }

func (calls *outstandingCalls) addUnobserved(pod types.UID, c *call) {
	calls.unobserved[pod] = c
	calls.oldestUnobserved = min(calls.oldestUnobserved, c.sentAt)
}

// expire moves calls that were unobserved for longer than expectationsTimeout to expired
// (allowed behavior expired-expectations).
func (calls *outstandingCalls) expire(at time.Duration) {
	if calls.oldestUnobserved > at-expectationsTimeout {
		return
	}
	calls.oldestUnobserved = math.MaxInt64
	for pod, c := range calls.unobserved {
		if c.sentAt <= at-expectationsTimeout {
			delete(calls.unobserved, pod)
			calls.expired[pod] = c
		} else {
			calls.oldestUnobserved = min(calls.oldestUnobserved, c.sentAt)
		}
	}
}

// outstandingExcept counts the outstanding calls, except for the given one.
func (calls *outstandingCalls) outstandingExcept(except *call) int {
	return calls.inFlightExcept(except) + len(calls.unobserved)
}

// records returns the sequence numbers of the oldest outstanding calls, at most three.
func (calls *outstandingCalls) records() []int64 {
	const recordsMax = 3
	var seqs []int64
	for c := range maps.Values(calls.unobserved) {
		seqs = append(seqs, c.seq)
	}
	for c := range maps.Values(calls.inFlight) {
		seqs = append(seqs, c.seq)
	}
	slices.Sort(seqs)
	return seqs[:min(recordsMax, len(seqs))]
}

// owner returns the cached owner, or nil.
func (state *ownerState) owner() *objects.Owner { return state.process.view.owners[state.uid] }

// everCached reports whether the owner was ever in the process's cache.
func (state *ownerState) everCached() bool { return state.createBound.sinceIdle.valid }

// name returns the name of the owner for evidence.
func (state *ownerState) name() string {
	if o := state.owner(); o != nil {
		return o.String()
	}
	return "owner " + string(state.uid)
}

// ref returns the reference of the owner for evidence.
func (state *ownerState) ref() *history.Ref {
	if o := state.owner(); o != nil {
		return &o.Ref
	}
	return &history.Ref{UID: state.uid}
}

// expectationsSatisfied reports whether the process has observed all its creates and
// deletes for the owner, except for the given call. Only then may it decide again.
func (state *ownerState) expectationsSatisfied(except *call) bool {
	return state.synced &&
		state.creates.inFlightExcept(except) == 0 && state.deletes.inFlightExcept(except) == 0 &&
		len(state.creates.unobserved) <= state.excessObserved && len(state.deletes.unobserved) == 0
}

// inFlightExcept counts the calls in flight, except for the given one.
func (calls *outstandingCalls) inFlightExcept(except *call) int {
	n := len(calls.inFlight)
	if except != nil && calls.inFlight[except.id] == except {
		n--
	}
	return n
}

// noLongerAwaited returns the number of unobserved creates for which the process may no
// longer wait. The process may have counted other pods as its own creates instead.
func (state *ownerState) noLongerAwaited() int {
	return min(len(state.creates.unobserved), max(0, state.excessObserved-len(state.observedBeforeAnswer)))
}

// possiblyUncounted returns the number of cached pods that the process may not have counted
// in its decision. The process may have decided before these pods arrived, because other
// pods had satisfied its expectations.
func (state *ownerState) possiblyUncounted() int {
	return max(0, state.excessObserved-len(state.creates.unobserved))
}

// update recomputes the state from the caches of the process after a change of the owner or
// of its pods.
func (state *ownerState) update(change change, at time.Duration) {
	view, before := state.process.view, state.podCounts
	o := view.owners[state.uid]
	state.podCounts = view.podCountsOf(state.uid)
	state.forgetExcessObserved(at)
	created := state.observeNewPods(change.newPods, at)
	if state.synced {
		state.gained.add(at, max(0, state.podCounts.replicas-before.replicas-created))
		state.lost.add(at, max(0, before.controlledOrAdoptable()-state.podCounts.controlledOrAdoptable()))
	}
	state.synced = o != nil && view.reachedVersion[objects.PodResource] > 0
	createBound, deleteBound := 0, unlimited
	if o == nil { // the controller deletes the expectations of a deleted owner
		clear(state.creates.unobserved)
		clear(state.creates.expired)
		clear(state.deletes.unobserved)
		clear(state.deletes.expired)
	} else {
		state.trackSelector(o)
		state.trackTemplate(o.Template)
		if !o.Terminating {
			createBound, deleteBound = o.Replicas, o.Replicas
		}
	}
	state.createBound.record(at, createBound)
	state.deleteBound.record(at, deleteBound)
	state.statusBounds.update(o, before, state.podCounts, view.relisted, at)
}

func (state *ownerState) trackSelector(o *objects.Owner) {
	if s := o.Selector.String(); s != state.selector {
		state.selectorChanged = state.selectorChanged || state.selector != ""
		state.selector = s
	}
}

// templatesMax is the maximum number of templates that the model stores for an owner. The
// model assumes that no decision depends on an older template.
const templatesMax = 16

// trackTemplate stores the owner's template if it has changed.
func (state *ownerState) trackTemplate(t *objects.Template) {
	if n := len(state.templates); n > 0 && state.templates[n-1] == t {
		return
	}
	state.templates = append(state.templates, t)
	state.templates = state.templates[max(0, len(state.templates)-templatesMax):]
}

// controlledOrAdoptable returns how many active pods the owner controls or may adopt.
func (counts podCounts) controlledOrAdoptable() int { return counts.controlled + counts.orphans }

// observeNewPods matches pods that are new in the cache with the process's creates. It
// returns how many of them the process has certainly observed as its own creates.
func (state *ownerState) observeNewPods(pods []types.UID, at time.Duration) (own int) {
	for _, uid := range pods {
		if state.creates.unobserved[uid] != nil {
			delete(state.creates.unobserved, uid)
			if state.excessObserved == 0 {
				own++
			} else { // the process may have decided without this pod, so one more added pod is in excess
				state.excessObservedAt = at
			}
			continue
		}
		if !state.synced {
			continue // the process starts with these pods
		}
		state.excessObserved++
		state.excessObservedAt = at
		if len(state.creates.inFlight) > 0 {
			state.observedBeforeAnswer[uid] = true
		}
	}
	return own
}

// observeDeletion records that the cache no longer contains an active pod that the process
// deletes.
func (state *ownerState) observeDeletion(pod types.UID, at time.Duration) {
	delete(state.process.deleting, pod)
	if state.deletes.unobserved[pod] != nil {
		delete(state.deletes.unobserved, pod)
		state.lost.add(at, -1)
		return
	}
	for _, c := range state.deletes.inFlight {
		if c.pod.UID == pod && !c.effectObserved {
			c.effectObserved = true
			state.lost.add(at, -1)
			return
		}
	}
}

// forgetExcessObserved resets excessObserved when it can no longer affect expectations. A
// controller sets expectations when a batch begins, possibly long before the first call.
// The expectations remain while client-go waits to retry a call of the batch.
func (state *ownerState) forgetExcessObserved(at time.Duration) {
	if state.creates.outstanding() == 0 && at-state.excessObservedAt > lag && !state.process.clientMayRetry(at) {
		state.excessObserved = 0
	}
}

// recordCall records a create or delete that was sent.
func (state *ownerState) recordCall(c *call) {
	state.creates.expire(c.sentAt)
	state.deletes.expire(c.sentAt)
	switch c.verb {
	case callCreatePod:
		state.forgetExcessObserved(c.sentAt)
		state.creates.inFlight[c.id] = c
	case callDeletePod:
		state.deletes.inFlight[c.id] = c
		if c.deletesActivePod() {
			state.process.deleting[c.pod.UID] = state
		}
	}
}

// recordAnswer records the response to a create or delete.
func (state *ownerState) recordAnswer(c *call, r *history.Response, at time.Duration) {
	state.forgetExcessObserved(at)
	switch c.verb {
	case callCreatePod:
		delete(state.creates.inFlight, c.id)
		if r.OK() && r.Object != nil {
			state.recordCreated(c, r.Object, at)
		}
		if len(state.creates.inFlight) == 0 {
			clear(state.observedBeforeAnswer)
		}
		state.statusBounds.recordCallResult(r.OK(), true, r, at)
	case callDeletePod:
		delete(state.deletes.inFlight, c.id)
		if r.Code == http.StatusNotFound {
			state.statusBounds.deletesNotFound.add(at, 1)
		}
		state.statusBounds.recordCallResult(r.OK() || r.Code == http.StatusNotFound, state.process.view.atMostOneOwner(c.pod.UID), r, at)
		switch p := state.process.view.pods[c.pod.UID]; {
		case r.OK() && p != nil && p.Active:
			state.deletes.addUnobserved(c.pod.UID, c)
		case !r.OK() && c.effectObserved: // somebody else deleted the pod
			state.lost.add(at, 1)
		case !r.OK():
			delete(state.process.deleting, c.pod.UID)
		}
	}
}

// recordCreated records a pod that a successful create returned.
func (state *ownerState) recordCreated(c *call, created *history.Object, at time.Duration) {
	view := state.process.view
	switch {
	case state.observedBeforeAnswer[created.UID]:
		delete(state.observedBeforeAnswer, created.UID)
		state.excessObserved = max(0, state.excessObserved-1)
		state.gained.add(at, -1)
	case view.pods[created.UID] != nil || created.Version <= view.reachedVersion[objects.PodResource]:
	default:
		c.createdVersion = created.Version
		state.creates.addUnobserved(created.UID, c)
	}
}

// dropObservedCreates removes unobserved creates if the cache is at least as new as the
// created pod. The process can no longer observe such a pod, because it was created and
// deleted while the process had no watch. The function reports whether it has removed any
// create.
func (state *ownerState) dropObservedCreates() bool {
	before := len(state.creates.unobserved)
	maps.DeleteFunc(state.creates.unobserved, func(_ types.UID, c *call) bool {
		return c.createdVersion <= state.process.view.reachedVersion[objects.PodResource]
	})
	return len(state.creates.unobserved) < before
}

// expiredCreates returns the expired creates whose pods are newer than the cache of pods.
func (state *ownerState) expiredCreates() map[types.UID]*call {
	maps.DeleteFunc(state.creates.expired, func(_ types.UID, c *call) bool {
		return c.createdVersion <= state.process.view.reachedVersion[objects.PodResource]
	})
	return state.creates.expired
}

// becameIdle records that the process was idle until now. It drops bounds and counts from
// before the recent window.
func (state *ownerState) becameIdle(at time.Duration) {
	state.createBound.becameIdle(at)
	state.deleteBound.becameIdle(at)
	state.gained.becameIdle(at)
	state.lost.becameIdle(at)
	state.closed = state.owner() == nil && state.creates.outstanding()+state.deletes.outstanding() == 0
}

// perOwnerState is the state that a checker has for each ownerState. When the number of
// entries has doubled, it removes the entries of closed ownerStates.
type perOwnerState[T any] struct {
	states  map[*ownerState]*T
	sweepAt int
}

// of returns the state that the checker has for an ownerState. The initial state is the
// zero value.
func (p *perOwnerState[T]) of(state *ownerState) *T {
	if s := p.states[state]; s != nil {
		return s
	}
	if p.states == nil {
		p.states = map[*ownerState]*T{}
	}
	if len(p.states) >= p.sweepAt {
		for old := range p.states {
			if old.closed || old.process.ended {
				delete(p.states, old)
			}
		}
		p.sweepAt = 2*len(p.states) + 64
	}
	p.states[state] = new(T)
	return p.states[state]
}
