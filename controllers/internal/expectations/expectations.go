// Package expectations records the creates and deletes that a controller has requested
// and not yet observed. A controller consults it so that it does not request them
// twice while its informer cache is stale.
//
// The package tracks every child by UID. An observation counts once, however often it
// is delivered. If the response to a create was lost, the event of its child does not
// satisfy the expectation of another create.
//
// The package makes no decisions and calls no API. It is safe for concurrent use.
package expectations

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/controllers/internal/ownership"
)

// Timeout is how long an unmet expectation blocks the syncs of its owner. Without it,
// an event that never arrives would block the owner forever.
const Timeout = 5 * time.Minute

// Tracker holds the expectations of many owners, at most one set per owner.
type Tracker struct {
	clock        clock.PassiveClock
	cacheReached func(resourceVersion string) bool

	mu    sync.Mutex
	byKey map[string]*expectation
}

// expectation is the set of creates and deletes that one owner waits for.
type expectation struct {
	uid   types.UID
	since time.Time
	// unanswered counts creates that have neither succeeded nor failed yet.
	unanswered int
	// created maps children that were created and not yet observed to the
	// resourceVersion of the create response.
	created map[types.UID]string
	// observedEarly holds children that were observed while creates were unanswered: a
	// watch event may arrive before the response.
	observedEarly map[types.UID]struct{}
	// deleted holds children whose deletion was requested and not yet observed.
	deleted map[types.UID]struct{}
}

// New returns an empty Tracker. The function cacheReached must report whether the cache
// of the children has reached a resourceVersion. It must return false if the versions
// cannot be compared. Once the cache has reached the version at which a child was
// created, the child has been observed or is gone. This holds even if no event was
// delivered for it, for example after a relist.
func New(clock clock.PassiveClock, reached func(resourceVersion string) bool) *Tracker {
	return &Tracker{clock: clock, cacheReached: reached, byKey: map[string]*expectation{}}
}

// ExpectCreations replaces the expectations of owner with n creates.
func (t *Tracker) ExpectCreations(owner ownership.ID, n int) {
	t.set(owner, &expectation{unanswered: n})
}

// ExpectDeletions replaces the expectations of owner with the deletion of children.
func (t *Tracker) ExpectDeletions(owner ownership.ID, children []types.UID) {
	deleted := make(map[types.UID]struct{}, len(children))
	for _, child := range children {
		deleted[child] = struct{}{}
	}
	t.set(owner, &expectation{deleted: deleted})
}

func (t *Tracker) set(owner ownership.ID, e *expectation) {
	e.uid, e.since = owner.UID, t.clock.Now()
	e.created, e.observedEarly = map[types.UID]string{}, map[types.UID]struct{}{}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byKey[owner.Key] = e
}

// Created records that a create succeeded and returned child. The tracker then waits
// for child, unless it has been observed already.
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

// CreationsFailed records that n creates failed or were never sent.
func (t *Tracker) CreationsFailed(owner ownership.ID, n int) {
	t.update(owner, func(e *expectation) { e.answer(n) })
}

// CreationObserved records that a child of owner was observed.
func (t *Tracker) CreationObserved(owner ownership.ID, child types.UID) {
	t.update(owner, func(e *expectation) { e.observe(child) })
}

// DeletionObserved records that a child of owner is terminating, is gone or has been
// released. Call it also if the delete request failed.
func (t *Tracker) DeletionObserved(owner ownership.ID, child types.UID) {
	t.update(owner, func(e *expectation) {
		delete(e.deleted, child)
		e.observe(child)
	})
}

// Satisfied reports whether owner has no unmet expectations, or has waited for
// Timeout.
func (t *Tracker) Satisfied(owner ownership.ID) bool {
	return t.Remaining(owner) == 0
}

// Remaining returns how much longer unmet expectations block owner: 0 if they are
// satisfied, at most Timeout.
func (t *Tracker) Remaining(owner ownership.ID) time.Duration {
	var remaining time.Duration
	t.update(owner, func(e *expectation) {
		if t.pending(e) > 0 {
			remaining = max(0, Timeout-t.clock.Since(e.since))
		}
	})
	return remaining
}

// Unmet reports whether owner has unmet expectations, even if they are older than
// Timeout. Satisfied, in contrast, ignores expectations that are older.
func (t *Tracker) Unmet(owner ownership.ID) (unmet bool) {
	t.update(owner, func(e *expectation) { unmet = t.pending(e) > 0 })
	return unmet
}

// Forget drops the expectations of owner. An object with the same key and another UID
// keeps its own.
func (t *Tracker) Forget(owner ownership.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.byKey[owner.Key]; e != nil && e.uid == owner.UID {
		delete(t.byKey, owner.Key)
	}
}

// ForgetKey drops the expectations of any owner under key.
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

// pending returns the number of observations that e still waits for.
func (t *Tracker) pending(e *expectation) int {
	for child, resourceVersion := range e.created {
		if t.cacheReached(resourceVersion) {
			delete(e.created, child)
		}
	}
	return e.unanswered + len(e.created) + len(e.deleted)
}

func (e *expectation) answer(n int) {
	e.unanswered = max(0, e.unanswered-n)
	if e.unanswered == 0 {
		clear(e.observedEarly)
	}
}

func (e *expectation) observe(child types.UID) {
	if _, awaited := e.created[child]; awaited {
		delete(e.created, child)
	} else if e.unanswered > 0 {
		e.observedEarly[child] = struct{}{}
	}
}
