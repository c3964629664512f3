// Package expectations records the creates and deletes that a controller has requested, but not
// yet observed in informer events. The controller waits for these events. It therefore does not
// repeat the requests while its informer cache is stale.
//
// The package identifies every child, such as a pod, by its UID. Several events of one child
// therefore count once. The response to a create may be lost. The event of the created child then
// does not satisfy the expectation of another create.
//
// An owner is the object whose children are created and deleted, such as a ReplicaSet.
//
// The package sends no API requests. It is safe for concurrent use.
package expectations

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/controllers/internal/ownership"
)

// Timeout is the maximum time for which unmet expectations block creates and deletes for an
// owner. Without this limit, an event that never arrives would block the owner forever.
const Timeout = 5 * time.Minute

// Tracker contains the expectations of many owners. For each owner it contains the expectations
// of the last sync that created or deleted children.
type Tracker struct {
	clock        clock.PassiveClock
	cacheReached func(resourceVersion string) bool

	mu    sync.Mutex
	byKey map[string]*expectation
}

// expectation contains the creates and deletes whose events one owner still waits for.
type expectation struct {
	uid   types.UID
	since time.Time
	// unanswered is the number of creates that have neither a response nor an error yet.
	unanswered int
	// created contains the children that were created, but not yet observed in an event. The
	// value is the resourceVersion in the response to the create.
	created map[types.UID]string
	// observedEarly contains children that were observed while some creates were unanswered. A
	// watch event may arrive before the response to the create of the same child.
	observedEarly map[types.UID]struct{}
	// deleted contains the children with a delete request whose event was not yet observed.
	deleted map[types.UID]struct{}
}

// New returns an empty Tracker.
//
// The argument reached is a function that reports whether the cache of the children contains all
// changes up to a resourceVersion. It must return false if this resourceVersion and the version of
// the cache cannot be compared.
//
// A created child counts as observed if the cache has reached the child's resourceVersion. No
// event is needed: the cache may have got the child, or its deletion, from a relist.
func New(clock clock.PassiveClock, reached func(resourceVersion string) bool) *Tracker {
	return &Tracker{clock: clock, cacheReached: reached, byKey: map[string]*expectation{}}
}

// ExpectCreations makes the owner wait for n creates. It replaces all earlier expectations of
// the owner.
func (t *Tracker) ExpectCreations(owner ownership.ID, n int) {
	t.set(owner, &expectation{unanswered: n})
}

// ExpectDeletions makes the owner wait for the deletion of the given children. It replaces all
// earlier expectations of the owner.
func (t *Tracker) ExpectDeletions(owner ownership.ID, children []types.UID) {
	deleted := make(map[types.UID]struct{}, len(children))
	for _, child := range children {
		deleted[child] = struct{}{}
	}
	t.set(owner, &expectation{deleted: deleted})
}

// set replaces the expectations of the owner. The time after which they expire (Timeout) starts
// now.
func (t *Tracker) set(owner ownership.ID, e *expectation) {
	e.uid, e.since = owner.UID, t.clock.Now()
	e.created, e.observedEarly = map[types.UID]string{}, map[types.UID]struct{}{}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byKey[owner.Key] = e
}

// Created records that a create for the owner succeeded, and that the response contains the
// given child. The owner then waits for the event of this child, unless the event has already
// arrived.
func (t *Tracker) Created(owner ownership.ID, child types.UID, resourceVersion string) {
	t.update(owner, func(e *expectation) {
		if _, seen := e.observedEarly[child]; seen {
			delete(e.observedEarly, child)
		} else {
			e.created[child] = resourceVersion
		}
		e.answer(1)
	})
}

// CreationsFailed records that n expected creates for the owner failed or were not sent. The
// owner no longer waits for these creates.
func (t *Tracker) CreationsFailed(owner ownership.ID, n int) {
	t.update(owner, func(e *expectation) { e.answer(n) })
}

// CreationObserved records that an informer event contains a child of the owner. The owner no
// longer waits for the create of this child.
func (t *Tracker) CreationObserved(owner ownership.ID, child types.UID) {
	t.update(owner, func(e *expectation) { e.observe(child) })
}

// DeletionObserved records that a child of the owner is terminating, deleted or released. Call
// DeletionObserved also after a failed delete request, because no event will follow.
func (t *Tracker) DeletionObserved(owner ownership.ID, child types.UID) {
	t.update(owner, func(e *expectation) {
		delete(e.deleted, child)
		e.observe(child)
	})
}

// Satisfied reports whether the owner has no unmet expectations. Expectations older than Timeout
// count as met.
func (t *Tracker) Satisfied(owner ownership.ID) bool {
	return t.Remaining(owner) == 0
}

// Remaining returns how much longer unmet expectations block creates and deletes for the owner.
// It returns 0 if all expectations are met or are older than Timeout.
func (t *Tracker) Remaining(owner ownership.ID) time.Duration {
	var remaining time.Duration
	t.update(owner, func(e *expectation) {
		if t.pending(e) > 0 {
			remaining = max(0, Timeout-t.clock.Since(e.since))
		}
	})
	return remaining
}

// Unmet reports whether the owner has unmet expectations, even if they are older than Timeout. Such
// expectations show that events of the owner's children are missing.
func (t *Tracker) Unmet(owner ownership.ID) (unmet bool) {
	t.update(owner, func(e *expectation) { unmet = t.pending(e) > 0 })
	return unmet
}

// Forget drops the expectations of the owner. It does nothing if the recorded expectations
// belong to another owner with the same key and a different UID.
func (t *Tracker) Forget(owner ownership.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.byKey[owner.Key]; e != nil && e.uid == owner.UID {
		delete(t.byKey, owner.Key)
	}
}

// ForgetKey drops the expectations of the owner with the given key, whatever UID the owner had.
// Call it when the owner no longer exists.
func (t *Tracker) ForgetKey(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byKey, key)
}

func (t *Tracker) update(owner ownership.ID, change func(*expectation)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.byKey[owner.Key]; e != nil && e.uid == owner.UID {
		change(e)
	}
}

// pending returns the number of events and responses that an owner still waits for. It first drops
// the created children whose resourceVersion the cache has reached. The cache then already contains
// the child, or the child's deletion.
func (t *Tracker) pending(e *expectation) int {
	for child, resourceVersion := range e.created {
		if t.cacheReached(resourceVersion) {
			delete(e.created, child)
		}
	}
	return e.unanswered + len(e.created) + len(e.deleted)
}

// answer records that n creates have got a response or an error. The owner then no longer waits for
// these responses.
func (e *expectation) answer(n int) {
	e.unanswered = max(0, e.unanswered-n)
	if e.unanswered == 0 {
		clear(e.observedEarly)
	}
}

// observe records that an informer event contains a child of the owner. If the field created
// contains the child, the owner has waited for this event. The owner then no longer waits.
//
// If creates are unanswered, one of them may have created the child, and the event arrived before
// the response. observe then stores the child in observedEarly, so that the owner does not wait for
// a second event.
func (e *expectation) observe(child types.UID) {
	if _, awaited := e.created[child]; awaited {
		delete(e.created, child)
	} else if e.unanswered > 0 {
		e.observedEarly[child] = struct{}{}
	}
}
