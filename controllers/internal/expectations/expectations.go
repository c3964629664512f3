// Package expectations records the creates and deletes that a controller has requested and not
// yet observed in events. A controller waits for these events, so that it does not repeat the
// requests while its informer cache is stale.
//
// The package identifies every child by its UID. Repeated events of a child therefore count
// once. If the response to a create is lost, the event of the created child does not satisfy
// the expectation of another create.
//
// The package does not call the API server. It is safe for concurrent use.
package expectations

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/controllers/internal/ownership"
)

// Timeout is the maximum time for which unmet expectations block creates and deletes for their
// owner. Without it, an event that never arrives would block them forever.
const Timeout = 5 * time.Minute

// Tracker contains the expectations of many owners. Each owner has at most one set of
// expectations.
type Tracker struct {
	clock        clock.PassiveClock
	cacheReached func(resourceVersion string) bool

	mu    sync.Mutex
	byKey map[string]*expectation
}

// expectation is the set of creates and deletes whose events one owner waits for.
type expectation struct {
	uid   types.UID
	since time.Time
	// unanswered is the number of creates without a result: neither a response nor an error.
	unanswered int
	// created contains the children that were created and not yet observed. The value is the
	// resourceVersion in the response to the create.
	created map[types.UID]string
	// observedEarly contains children that were observed while some creates were unanswered. A
	// watch event may arrive before the response to the create.
	observedEarly map[types.UID]struct{}
	// deleted contains the children whose deletion was requested and not yet observed.
	deleted map[types.UID]struct{}
}

// New returns an empty Tracker.
//
// The function reached must report whether the cache of the children contains all changes up to
// a resourceVersion. It must return false if the versions cannot be compared. A child whose
// resourceVersion the cache has reached counts as observed, even if the cache got the child, or
// its deletion, from a relist without an event.
func New(clock clock.PassiveClock, reached func(resourceVersion string) bool) *Tracker {
	return &Tracker{clock: clock, cacheReached: reached, byKey: map[string]*expectation{}}
}

// ExpectCreations replaces the expectations of owner by n creates.
func (t *Tracker) ExpectCreations(owner ownership.ID, n int) {
	t.set(owner, &expectation{unanswered: n})
}

// ExpectDeletions replaces the expectations of owner by the deletions of the given children.
func (t *Tracker) ExpectDeletions(owner ownership.ID, children []types.UID) {
	deleted := make(map[types.UID]struct{}, len(children))
	for _, child := range children {
		deleted[child] = struct{}{}
	}
	t.set(owner, &expectation{deleted: deleted})
}

// set replaces the expectations of owner, and starts their Timeout.
func (t *Tracker) set(owner ownership.ID, e *expectation) {
	e.uid, e.since = owner.UID, t.clock.Now()
	e.created, e.observedEarly = map[types.UID]string{}, map[types.UID]struct{}{}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byKey[owner.Key] = e
}

// Created records that a create succeeded and returned the given child. The owner then waits
// for the event of this child, if it has not arrived yet.
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

// CreationsFailed records that n creates failed or were not sent.
func (t *Tracker) CreationsFailed(owner ownership.ID, n int) {
	t.update(owner, func(e *expectation) { e.answer(n) })
}

// CreationObserved records an event that shows a child of owner.
func (t *Tracker) CreationObserved(owner ownership.ID, child types.UID) {
	t.update(owner, func(e *expectation) { e.observe(child) })
}

// DeletionObserved records that a child of owner is terminating, deleted or released. The
// controller also calls it after a failed delete request, because no event will follow.
func (t *Tracker) DeletionObserved(owner ownership.ID, child types.UID) {
	t.update(owner, func(e *expectation) {
		delete(e.deleted, child)
		e.observe(child)
	})
}

// Satisfied reports whether owner has no unmet expectations. Expectations older than Timeout
// count as satisfied.
func (t *Tracker) Satisfied(owner ownership.ID) bool {
	return t.Remaining(owner) == 0
}

// Remaining returns how much longer unmet expectations block creates and deletes for the
// owner. It returns 0 if the expectations are satisfied or older than Timeout.
func (t *Tracker) Remaining(owner ownership.ID) time.Duration {
	var remaining time.Duration
	t.update(owner, func(e *expectation) {
		if t.pending(e) > 0 {
			remaining = max(0, Timeout-t.clock.Since(e.since))
		}
	})
	return remaining
}

// Unmet reports whether owner has unmet expectations, even if they are older than Timeout.
func (t *Tracker) Unmet(owner ownership.ID) (unmet bool) {
	t.update(owner, func(e *expectation) { unmet = t.pending(e) > 0 })
	return unmet
}

// Forget drops the expectations of owner. It does nothing if they belong to an owner with the
// same key and another UID.
func (t *Tracker) Forget(owner ownership.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.byKey[owner.Key]; e != nil && e.uid == owner.UID {
		delete(t.byKey, owner.Key)
	}
}

// ForgetKey drops the expectations of the owner with the given key, whatever its UID is.
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

// pending returns the number of events and responses that an owner still waits for. It drops
// created children that the cache has reached.
func (t *Tracker) pending(e *expectation) int {
	for child, resourceVersion := range e.created {
		if t.cacheReached(resourceVersion) {
			delete(e.created, child)
		}
	}
	return e.unanswered + len(e.created) + len(e.deleted)
}

// answer records the results of n creates.
func (e *expectation) answer(n int) {
	e.unanswered = max(0, e.unanswered-n)
	if e.unanswered == 0 {
		clear(e.observedEarly)
	}
}

// observe records that a child exists, or no longer exists, so that the tracker no longer waits
// for its create.
//
// If a create has no response yet, it may be the one that made this child. observe then
// remembers the child.
func (e *expectation) observe(child types.UID) {
	if _, awaited := e.created[child]; awaited {
		delete(e.created, child)
	} else if e.unanswered > 0 {
		e.observedEarly[child] = struct{}{}
	}
}
