package check

import (
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// Limits in the algorithm of the ReplicaSet and ReplicationController controllers, such as the
// maximum number of creates in one sync.
const (
	// burstLimit is the maximum number of creates of pods for one owner that may be outstanding at
	// the same time. The same limit applies to deletes (contract ReplicaSet 8, 9).
	burstLimit = 500
	// expectationsTimeout is how long the model expects a controller to wait for the effect of a
	// create or delete. A controller may stop waiting 5 minutes after its decision (contract
	// ReplicaSet 2). The decision may precede the first request by some seconds, so the constant is
	// 10 seconds shorter.
	expectationsTimeout = 5*time.Minute - 10*time.Second
	// unlimited is the deleteBound of an owner whose pods the process must not delete. It is larger
	// than any number of pods.
	unlimited = math.MaxInt32
)

// newOwnerState returns the state of a process for the ReplicaSet or ReplicationController with
// the given UID. It contains no creates or deletes.
func newOwnerState(p *process, uid types.UID) *ownerState {
	return &ownerState{
		process:              p,
		uid:                  uid,
		adopted:              map[types.UID]history.Version{},
		creates:              newOutstandingCalls(),
		deletes:              newOutstandingCalls(),
		observedBeforeAnswer: map[types.UID]bool{},
		removed:              -2 * lag,
	}
}

// newOutstandingCalls returns an outstandingCalls that contains no creates or deletes.
func newOutstandingCalls() outstandingCalls {
	return outstandingCalls{
		inFlight: map[uint64]*call{}, unobserved: map[types.UID]*call{}, oldestUnobserved: math.MaxInt64, expired: map[types.UID]*call{},
	}
}

// outstanding returns how many creates or deletes have no response, or succeeded but have not
// reached the cache.
func (calls *outstandingCalls) outstanding() int { return len(calls.inFlight) + len(calls.unobserved) }

// addUnobserved adds a successful create or delete of a pod, whose effect has not reached the
// cache.
func (calls *outstandingCalls) addUnobserved(pod types.UID, c *call) {
	calls.unobserved[pod] = c
	calls.oldestUnobserved = min(calls.oldestUnobserved, c.sentAt)
}

// expire moves the creates or deletes that were sent at least expectationsTimeout ago from
// unobserved to expired (allowed behavior expired-expectations). The parameter at is the current
// time on the clock of the process. The result says whether any call expired.
func (calls *outstandingCalls) expire(at time.Duration) bool {
	if calls.oldestUnobserved > at-expectationsTimeout {
		return false
	}
	calls.oldestUnobserved = math.MaxInt64
	anyExpired := false
	for pod, c := range calls.unobserved {
		if c.sentAt <= at-expectationsTimeout {
			delete(calls.unobserved, pod)
			calls.expired[pod] = c
			anyExpired = true
		} else {
			calls.oldestUnobserved = min(calls.oldestUnobserved, c.sentAt)
		}
	}
	return anyExpired
}

// expire lets the process stop waiting for the creates and deletes that it sent at least
// expectationsTimeout ago. If there were any, the result contains the present pod counts, on which
// the process may act. Otherwise the result is nil.
func (state *ownerState) expire(at time.Duration) *podCounts {
	creates, deletes := state.creates.expire(at), state.deletes.expire(at)
	if !creates && !deletes {
		return nil
	}
	counts := state.podCounts
	return &counts
}

// outstandingExcept returns the number of outstanding creates or deletes, without the given one.
// A create or delete is outstanding until it fails, or until its effect has reached the cache.
func (calls *outstandingCalls) outstandingExcept(except *call) int {
	return calls.inFlightExcept(except) + len(calls.unobserved)
}

// records returns the sequence numbers of the three oldest outstanding creates or deletes, for
// the evidence of a violation.
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

// owner returns the ReplicaSet or ReplicationController from the cache. It returns nil if the
// cache does not contain this object.
func (state *ownerState) owner() *objects.Owner { return state.process.view.owners[state.uid] }

// everCached reports whether a list or watch event has delivered the owner, or one of its pods,
// to the process. Until then, the model does not know how many pods the process may create or
// delete.
func (state *ownerState) everCached() bool { return state.createBound.sinceIdle.valid }

// name formats the owner for the evidence of a violation as kind namespace/name. If the cache
// does not contain the owner, the result is "owner" and the UID.
func (state *ownerState) name() string {
	if o := state.owner(); o != nil {
		return o.String()
	}
	return "owner " + string(state.uid)
}

// describePods lists the owner's pods in the cache, grouped by phase and readiness, for the
// evidence of a violation. An example is "2 Running and ready (web-a, web-b), 1 Failed (web-c)".
func (state *ownerState) describePods() string {
	names := map[string][]string{}
	for _, p := range state.process.view.controlled[state.uid] {
		names[p.DescribeState()] = append(names[p.DescribeState()], p.Name)
	}
	var groups []string
	for _, description := range slices.Sorted(maps.Keys(names)) {
		of := names[description]
		slices.Sort(of)
		listed := strings.Join(of[:min(len(of), listedPodsMax)], ", ")
		if len(of) > listedPodsMax {
			listed += ", …"
		}
		groups = append(groups, fmt.Sprintf("%d %s (%s)", len(of), description, listed))
	}
	if len(groups) == 0 {
		return "no pods"
	}
	return strings.Join(groups, ", ")
}

// listedPodsMax is the maximum number of pod names that describePods lists in one group.
const listedPodsMax = 5

// ref returns the owner's reference for the evidence of a violation. If the cache does not
// contain the owner, the reference contains only the UID.
func (state *ownerState) ref() *history.Ref {
	if o := state.owner(); o != nil {
		return &o.Ref
	}
	return &history.Ref{UID: state.uid}
}

// expectationsSatisfied reports whether the process may decide on new creates or deletes of the
// owner's pods. The cache must contain the owner, and show the effects of all earlier creates and
// deletes of the process.
//
// There is one exception: for each extra pod in the cache, one created pod may be missing. An extra
// pod is one that the process did not create. A controller that only counts the added pods takes it
// for one of its own.
//
// The parameter current is a request that does not count, such as the one that the process sends
// now. It may be nil.
func (state *ownerState) expectationsSatisfied(current *call) bool {
	return state.synced && state.hasObservedCalls(current)
}

// hasObservedCalls is like expectationsSatisfied, but the cache need not contain the owner.
func (state *ownerState) hasObservedCalls(current *call) bool {
	return state.creates.inFlightExcept(current) == 0 && state.deletes.inFlightExcept(current) == 0 &&
		len(state.creates.unobserved) <= state.extraObserved && len(state.deletes.unobserved) == 0
}

// awaitsOnlyResponses reports whether the process still waits for responses to calls, although the cache
// may show all their effects.
func (state *ownerState) awaitsOnlyResponses() bool {
	if !state.synced || len(state.creates.inFlight)+len(state.deletes.inFlight) == 0 {
		return false
	}
	for _, c := range state.deletes.inFlight {
		if !c.effectObserved {
			return false
		}
	}
	return len(state.creates.inFlight) <= len(state.observedBeforeAnswer) &&
		len(state.creates.unobserved) <= state.extraObserved-len(state.observedBeforeAnswer) && len(state.deletes.unobserved) == 0
}

// inFlightExcept returns how many creates or deletes have no response yet, without the given one.
func (calls *outstandingCalls) inFlightExcept(except *call) int {
	n := len(calls.inFlight)
	if except != nil && calls.inFlight[except.id] == except {
		n--
	}
	return n
}

// mayDecide reports whether the process may decide on new creates or deletes of the owner's pods at the
// given time. For a short time after the cache has lost the owner, a worker may still have the last
// version of the owner, and may read the pods.
func (state *ownerState) mayDecide(current *call, at time.Duration) bool {
	recent := state.synced || state.owner() == nil && at-state.removed <= lag
	return recent && state.hasObservedCalls(current)
}

// noLongerAwaited returns how many creates the process may have stopped waiting for, although the
// cache does not contain their pods.
//
// This happens to a controller that only counts the pods that appear in its cache. If it counts a
// pod that it did not create (an extra pod), it waits for one create fewer.
func (state *ownerState) noLongerAwaited() int {
	return min(len(state.creates.unobserved), max(0, state.extraObserved-len(state.observedBeforeAnswer)))
}

// recordAdopted records that the process has adopted a pod for the owner. The argument is the cached
// version of the pod on which the adoption was based. If the cache already shows the adoption, the model
// has counted the pod as gained, and recordAdopted corrects this count.
func (state *ownerState) recordAdopted(pod *objects.Pod, at time.Duration) {
	switch {
	case pod.Controller.UID == state.uid: // a worker that read an older version has adopted the pod again
	case state.unchanged(pod.UID, pod.Version):
		state.adopted[pod.UID] = pod.Version
	case state.counts(pod.UID):
		state.gained.add(at, -1)
	}
}

// unchanged reports whether the cache contains the given version of a pod.
func (state *ownerState) unchanged(pod types.UID, version history.Version) bool {
	p := state.process.view.pods[pod]
	return p != nil && p.Version == version
}

// counts reports whether the owner has an active pod in the cache. The owner must control the pod, and its
// selector must match it.
func (state *ownerState) counts(pod types.UID) bool {
	p, o := state.process.view.pods[pod], state.owner()
	return p != nil && o != nil && p.Active && p.Controller.UID == state.uid && o.Selector.Matches(p.Labels)
}

// adoptedUnobserved returns how many active pods the process has adopted for the owner before its cache
// shows it. A controller adopts pods before it compares their number with spec.replicas, so it counts
// these pods.
func (state *ownerState) adoptedUnobserved() int {
	if state.selectorChanged {
		return 0
	}
	n := 0
	for uid, version := range state.adopted {
		if state.unchanged(uid, version) && state.process.view.pods[uid].Active {
			n++
		}
	}
	return n
}

// observeAdopted forgets the adopted pods that have changed in the cache since their adoption. It
// returns how many of them are now active pods of the owner.
func (state *ownerState) observeAdopted() (observed int) {
	maps.DeleteFunc(state.adopted, func(uid types.UID, version history.Version) bool {
		if state.unchanged(uid, version) {
			return false
		}
		if state.counts(uid) {
			observed++
		}
		return true
	})
	return observed
}

// possiblyUncounted returns how many of the owner's cached pods may have arrived after the last
// decision of the process.
//
// A controller may decide as soon as the cache has gained as many pods as the controller created.
// If extra pods, which the process did not create, are among the gained pods, then as many pods of
// its own are still missing. The process decides without these pods, which arrive later.
func (state *ownerState) possiblyUncounted() int {
	return max(0, state.extraObserved-len(state.creates.unobserved))
}

// update updates the expectations, counts and bounds after the owner or one of its pods has changed
// in the cache. The parameter change says whether the owner itself changed, and which pods are new.
func (state *ownerState) update(change change, at time.Duration) {
	view, before := state.process.view, state.podCounts
	o := view.owners[state.uid]
	state.podCounts = view.podCountsOf(state.uid)
	state.forgetExtraObserved(at)
	created := state.observeNewPods(change.newPods, at)
	if state.synced {
		state.gained.add(at, max(0, state.podCounts.replicas-before.replicas-created-state.observeAdopted()))
		state.lost.add(at, max(0, before.controlledOrAdoptable()-state.podCounts.controlledOrAdoptable()))
	}
	if state.synced && o == nil {
		state.removed = at
	}
	state.synced = o != nil && view.reachedVersion[objects.PodResource] > 0
	createBound, deleteBound := 0, unlimited
	if o == nil { // a controller forgets its expectations for a deleted owner
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

// trackSelector stores the owner's selector. If the selector differs from the stored one, it sets
// selectorChanged, so that some checks skip the owner.
func (state *ownerState) trackSelector(o *objects.Owner) {
	if s := o.Selector.String(); s != state.selector {
		state.selectorChanged = state.selectorChanged || state.selector != ""
		state.selector = s
	}
}

// templatesMax is the maximum number of pod templates that the model stores for one owner. The
// model assumes that no worker acts on an older template.
const templatesMax = 16

// trackTemplate adds the owner's pod template to the field templates, unless it is the last
// template there. Checks compare the pods that the process creates with these templates.
func (state *ownerState) trackTemplate(t *objects.Template) {
	if n := len(state.templates); n > 0 && state.templates[n-1] == t {
		return
	}
	state.templates = append(state.templates, t)
	state.templates = state.templates[max(0, len(state.templates)-templatesMax):]
}

// controlledOrAdoptable returns the number of active pods that the owner controls, plus the
// orphans that it may adopt.
func (counts podCounts) controlledOrAdoptable() int { return counts.controlled + counts.orphans }

// observeNewPods records the owner's pods that are new in the cache. Each of them completes a
// create of this process, or is an extra pod, which the process did not create.
//
// It returns the number of new pods that the process has certainly counted as its own creates.
func (state *ownerState) observeNewPods(pods []types.UID, at time.Duration) (own int) {
	for _, uid := range pods {
		if state.creates.unobserved[uid] != nil {
			delete(state.creates.unobserved, uid)
			if state.extraObserved == 0 {
				own++
			} else { // the process may have counted an extra pod as this create, and decided before the created pod arrived
				state.extraObservedAt = at
			}
			continue
		}
		if state.creates.expired[uid] != nil && state.creates.outstanding() == 0 {
			own++ // the process awaits no other create that it could take this pod for
			state.lateObserved.add(at, 1)
			continue
		}
		if !state.synced {
			continue // without the owner or pods in its cache, the process had no expectations
		}
		state.extraObserved++
		state.extraObservedAt = at
		if len(state.creates.inFlight) > 0 {
			state.observedBeforeAnswer[uid] = true
		}
	}
	return own
}

// observeDeletion records that a pod became inactive in the cache because the process itself
// deletes it.
//
// The method update has counted the pod in ownerState.lost. That field must not count pods that the
// process itself deleted, so observeDeletion subtracts the pod again.
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

// forgetExtraObserved sets extraObserved to 0 when extra pods can no longer affect the expectations
// of the process. An extra pod is one that the process did not create.
//
// The process may decide on a batch of creates long before it sends the first of them.
// forgetExtraObserved therefore waits for lag (1 s) after the last extra pod. It also waits while a
// create is outstanding or while client-go may resend a request.
func (state *ownerState) forgetExtraObserved(at time.Duration) {
	if state.creates.outstanding() == 0 && at-state.extraObservedAt > lag && !state.process.clientMayRetry(at) {
		state.extraObserved = 0
	}
}

// recordCall records that the process sent a create or delete of one of the owner's pods. It
// ignores requests with another purpose.
func (state *ownerState) recordCall(c *call) {
	state.expire(c.sentAt)
	switch c.verb {
	case callCreatePod:
		state.forgetExtraObserved(c.sentAt)
		state.creates.inFlight[c.id] = c
	case callDeletePod:
		state.deletes.inFlight[c.id] = c
		if c.deletesActivePod() {
			state.process.deleting[c.pod.UID] = state
		}
	}
}

// recordAnswer records the response to a create or delete of one of the owner's pods. It ignores
// requests with another purpose.
func (state *ownerState) recordAnswer(c *call, r *history.Response, at time.Duration) {
	state.forgetExtraObserved(at)
	switch c.verb {
	case callCreatePod:
		delete(state.creates.inFlight, c.id)
		if r.OK() && r.Object != nil {
			state.recordCreated(c, r.Object, at)
			state.process.recordSuccess(c, r.Object.UID, at)
		}
		if len(state.creates.inFlight) == 0 {
			clear(state.observedBeforeAnswer)
		}
		state.statusBounds.createFailed = state.statusBounds.createFailed || !r.OK()
		state.statusBounds.recordCallResult(r.OK(), true, r, at)
	case callDeletePod:
		delete(state.deletes.inFlight, c.id)
		state.statusBounds.deleteFailed = state.statusBounds.deleteFailed || !r.OK()
		if r.Code == http.StatusNotFound {
			state.statusBounds.deletesNotFound.add(at, 1)
		}
		state.statusBounds.recordCallResult(r.OK() || r.Code == http.StatusNotFound, state.process.view.atMostOneOwner(c.pod.UID), r, at)
		if r.OK() {
			state.process.recordSuccess(c, c.pod.UID, at)
		}
		switch p := state.process.view.pods[c.pod.UID]; {
		case r.OK() && p != nil && p.Active:
			state.deletes.addUnobserved(c.pod.UID, c)
		case !r.OK() && c.effectObserved: // the delete failed, so another client deleted the pod
			state.lost.add(at, 1)
		case !r.OK():
			delete(state.process.deleting, c.pod.UID)
		}
	}
}

// recordCreated records the pod in the response to a successful create.
//
// If the cache already contains the pod, the model has counted it as an extra pod. An extra pod is
// one that the process did not create. recordCreated corrects this count. If the cache has not
// reached the pod's resourceVersion yet, recordCreated adds the pod to the field unobserved.
func (state *ownerState) recordCreated(c *call, created *history.Object, at time.Duration) {
	view := state.process.view
	switch {
	case state.observedBeforeAnswer[created.UID]:
		delete(state.observedBeforeAnswer, created.UID)
		state.extraObserved = max(0, state.extraObserved-1)
		state.gained.add(at, -1)
	case view.pods[created.UID] != nil || created.Version <= view.reachedVersion[objects.PodResource]:
	default:
		c.createdVersion = created.Version
		state.creates.addUnobserved(created.UID, c)
	}
}

// dropObservedCreates forgets creates whose pod was deleted again while the process had no watch.
// The process will never receive an event of such a pod.
//
// The cache has then reached the pod's resourceVersion, but does not contain the pod. The result is
// true if dropObservedCreates forgot any create.
func (state *ownerState) dropObservedCreates() bool {
	before := len(state.creates.unobserved)
	maps.DeleteFunc(state.creates.unobserved, func(_ types.UID, c *call) bool {
		return c.createdVersion <= state.process.view.reachedVersion[objects.PodResource]
	})
	return len(state.creates.unobserved) < before
}

// expiredCreates returns the expired creates whose pod may still reach the cache, by the pod's
// UID. The cache of pods has not reached the resourceVersion of such a pod.
func (state *ownerState) expiredCreates() map[types.UID]*call {
	maps.DeleteFunc(state.creates.expired, func(_ types.UID, c *call) bool {
		return c.createdVersion <= state.process.view.reachedVersion[objects.PodResource]
	})
	return state.creates.expired
}

// becameIdle records that the process was idle until now: it had sent nothing for a while and
// awaited no response. No sync can still act on the older states of the cache. becameIdle
// therefore forgets the bounds and counts from before the last one to two seconds.
func (state *ownerState) becameIdle(at time.Duration) {
	state.createBound.becameIdle(at)
	state.deleteBound.becameIdle(at)
	state.gained.becameIdle(at)
	state.lateObserved.becameIdle(at)
	state.lost.becameIdle(at)
	state.closed = state.owner() == nil && state.creates.outstanding()+state.deletes.outstanding() == 0
}

// perOwnerState stores a checker's own data about each ReplicaSet and ReplicationController in each
// process. An example is the number of creates that the process may still send.
type perOwnerState[T any] struct {
	states map[*ownerState]*T
	// sweepAt is the number of entries in states that triggers the next cleanup. A cleanup removes
	// entries of closed ownerStates and of ended processes. sweepAt is about twice the number of
	// entries after the last cleanup.
	sweepAt int
}

// of returns the checker's data about the given owner and process. If there is none, it adds a
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
