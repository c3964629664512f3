package check

import (
	"maps"
	"math"
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

const (
	// burstLimit is how many pods a controller may have created, or deleted, for
	// one owner without having observed it (contract ReplicaSet 8, 9).
	burstLimit = 500
	// expectationsTimeout is after how long a controller may give up waiting to
	// observe what it did (contract ReplicaSet 2). It counts from its decision,
	// which the history does not show: some time before the first call.
	expectationsTimeout = 5*time.Minute - 10*time.Second
	// unlimited is the deleteBound of an owner of which nothing may be deleted.
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

// outstanding is how many calls' effect the process cannot have observed.
func (calls *outstandingCalls) outstanding() int { return len(calls.inFlight) + len(calls.unobserved) }

func (calls *outstandingCalls) addUnobserved(pod types.UID, c *call) {
	calls.unobserved[pod] = c
	calls.oldestUnobserved = min(calls.oldestUnobserved, c.sentAt)
}

// expire gives up on what has been waited for too long (expired-expectations).
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

// outstandingExcept is how many calls' effect the process cannot have observed, the given
// one left out.
func (calls *outstandingCalls) outstandingExcept(except *call) int {
	return calls.inFlightExcept(except) + len(calls.unobserved)
}

// records returns where some of the outstanding calls stand in the history.
func (calls *outstandingCalls) records() []int64 {
	const some = 3
	var seqs []int64
	for c := range maps.Values(calls.unobserved) {
		seqs = append(seqs, c.seq)
	}
	for c := range maps.Values(calls.inFlight) {
		seqs = append(seqs, c.seq)
	}
	slices.Sort(seqs)
	return seqs[:min(some, len(seqs))]
}

// owner returns the owner as the process has it, or nil.
func (state *ownerState) owner() *owner { return state.process.view.owners[state.uid] }

// everCached reports whether the process has had the owner in view at all.
func (state *ownerState) everCached() bool { return state.createBound.sinceIdle.valid }

// name is how evidence names the owner.
func (state *ownerState) name() string {
	if o := state.owner(); o != nil {
		return o.String()
	}
	return "owner " + string(state.uid)
}

// ref points evidence to the owner.
func (state *ownerState) ref() *history.Ref {
	if o := state.owner(); o != nil {
		return &o.Ref
	}
	return &history.Ref{UID: state.uid}
}

// expectationsSatisfied reports whether the process may take a new decision about the owner:
// it has observed all that it did, except for the given call.
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

// noLongerAwaited is how many of the pods that it made and has not been shown the
// process may have stopped waiting for.
func (state *ownerState) noLongerAwaited() int {
	return min(len(state.creates.unobserved), max(0, state.excessObserved-len(state.observedBeforeAnswer)))
}

// possiblyUncounted is how many pods in view the process may have decided without: it
// took others for the last that it waited for.
func (state *ownerState) possiblyUncounted() int {
	return max(0, state.excessObserved-len(state.creates.unobserved))
}

// update takes in what has become of the owner in the view.
func (state *ownerState) update(t change, at time.Duration) {
	view, before := state.process.view, state.podCounts
	o := view.owners[state.uid]
	state.podCounts = view.podCountsOf(state.uid)
	state.forgetExcessObserved(at)
	created := state.observeNewPods(t.newPods, at)
	if state.synced {
		state.gained.add(at, max(0, state.podCounts.replicas-before.replicas-created))
		state.lost.add(at, max(0, before.controlledOrAdoptable()-state.podCounts.controlledOrAdoptable()))
	}
	state.synced = o != nil && view.reachedVersion[podResource] > 0
	ceiling, floor := 0, unlimited
	if o == nil { // expectations end with the owner
		clear(state.creates.unobserved)
		clear(state.creates.expired)
		clear(state.deletes.unobserved)
		clear(state.deletes.expired)
	} else {
		state.trackSelector(o)
		state.trackTemplate(o.template)
		if !o.terminating {
			ceiling, floor = o.replicas, o.replicas
		}
	}
	state.createBound.record(at, ceiling)
	state.deleteBound.record(at, floor)
	state.statusBounds.update(o, before, state.podCounts, view.relisted, at)
}

func (state *ownerState) trackSelector(o *owner) {
	if s := o.selector.String(); s != state.selector {
		state.selectorChanged = state.selectorChanged || state.selector != ""
		state.selector = s
	}
}

// templatesMax is how many templates of an owner are remembered: more than a process
// can be behind by.
const templatesMax = 16

// trackTemplate takes in the owner's template.
func (state *ownerState) trackTemplate(t *template) {
	if n := len(state.templates); n > 0 && state.templates[n-1] == t {
		return
	}
	state.templates = append(state.templates, t)
	state.templates = state.templates[max(0, len(state.templates)-templatesMax):]
}

// controlledOrAdoptable is the active pods that the owner controls or may adopt.
func (counts podCounts) controlledOrAdoptable() int { return counts.controlled + counts.orphans }

// observeNewPods takes in pods that are new in the view, and returns how many of them
// the process knew it had made.
func (state *ownerState) observeNewPods(pods []types.UID, at time.Duration) (own int) {
	for _, uid := range pods {
		if state.creates.unobserved[uid] != nil {
			delete(state.creates.unobserved, uid)
			if state.excessObserved == 0 {
				own++
			} else { // it may have decided without this one, and earns the credit again
				state.excessObservedAt = at
			}
			continue
		}
		if !state.synced {
			continue // it begins with these
		}
		state.excessObserved++
		state.excessObservedAt = at
		if len(state.creates.inFlight) > 0 {
			state.observedBeforeAnswer[uid] = true
		}
	}
	return own
}

// observeDeletion takes in that the view shows a pod gone that the process deletes.
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

// forgetExcessObserved drops the credit that no expectation can have used: expectations
// are set when a batch begins, which may be a while before its first call, and
// hold while a call of the batch is asleep in the client.
func (state *ownerState) forgetExcessObserved(at time.Duration) {
	if state.creates.outstanding() == 0 && at-state.excessObservedAt > lag && !state.process.clientMayRetry(at) {
		state.excessObserved = 0
	}
}

// recordCall enters a create or delete that is sent.
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

// recordAnswer enters the answer to a create or delete.
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
		case r.OK() && p != nil && p.active:
			state.deletes.addUnobserved(c.pod.UID, c)
		case !r.OK() && c.effectObserved: // it was somebody else's doing
			state.lost.add(at, 1)
		case !r.OK():
			delete(state.process.deleting, c.pod.UID)
		}
	}
}

// recordCreated enters a pod that the process has been told it made.
func (state *ownerState) recordCreated(c *call, made *history.Object, at time.Duration) {
	view := state.process.view
	switch {
	case state.observedBeforeAnswer[made.UID]:
		delete(state.observedBeforeAnswer, made.UID)
		state.excessObserved = max(0, state.excessObserved-1)
		state.gained.add(at, -1)
	case view.pods[made.UID] != nil || made.Version <= view.reachedVersion[podResource]:
	default:
		c.createdVersion = made.Version
		state.creates.addUnobserved(made.UID, c)
	}
}

// dropObservedCreates drops what the process has been shown by now without having been
// told of each: a pod that came and went while it was not watching. It reports
// whether there was such a one.
func (state *ownerState) dropObservedCreates() bool {
	before := len(state.creates.unobserved)
	maps.DeleteFunc(state.creates.unobserved, func(_ types.UID, c *call) bool {
		return c.createdVersion <= state.process.view.reachedVersion[podResource]
	})
	return len(state.creates.unobserved) < before
}

// expiredCreates returns the creates that the process was told it made, waits for no more, and
// has not been shown for all that: its view of pods has not got so far.
func (state *ownerState) expiredCreates() map[types.UID]*call {
	maps.DeleteFunc(state.creates.expired, func(_ types.UID, c *call) bool {
		return c.createdVersion <= state.process.view.reachedVersion[podResource]
	})
	return state.creates.expired
}

// becameIdle says that the process was idle until now.
func (state *ownerState) becameIdle(at time.Duration) {
	state.createBound.becameIdle(at)
	state.deleteBound.becameIdle(at)
	state.gained.becameIdle(at)
	state.lost.becameIdle(at)
	state.closed = state.owner() == nil && state.creates.outstanding()+state.deletes.outstanding() == 0
}

// perOwnerState is what a checker keeps for each ownerState. Closed ones are swept out
// when the number has doubled.
type perOwnerState[T any] struct {
	states  map[*ownerState]*T
	sweepAt int
}

// of returns what is kept for an ownerState, a zero value at first.
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
