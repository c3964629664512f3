// Package expectations remembers which creations and deletions a controller has
// asked for and not yet observed, so that it does not ask for them twice while
// its cache lags behind.
//
// Every child is followed by its UID: an observation counts once, however often
// it is delivered, and the child of a create whose response was lost settles
// nothing that other creates still wait for.
//
// It decides nothing and calls no API; it is safe for concurrent use.
package expectations

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/controllers/internal/ownership"
)

// Timeout is how long an unmet expectation holds its owner back. It bounds the
// harm of an observation that never comes.
const Timeout = 5 * time.Minute

// Tracker holds the expectations of many owners, at most one set an owner.
type Tracker struct {
	clock        clock.PassiveClock
	cacheReached func(resourceVersion string) bool

	mu    sync.Mutex
	byKey map[string]*expectation
}

// expectation is what one owner waits for.
type expectation struct {
	uid   types.UID
	since time.Time
	// unanswered counts creates whose outcome is not known yet.
	unanswered int
	// created maps children whose create was answered, and which have not been
	// observed, to the resourceVersion they were created at.
	created map[types.UID]string
	// observedEarly holds children observed while creates were unanswered: a watch may
	// be faster than the response.
	observedEarly map[types.UID]struct{}
	// deleted holds children whose deletion was asked for and not observed.
	deleted map[types.UID]struct{}
}

// New returns an empty Tracker. reached says whether the cache of the children
// has got to a resourceVersion (false when it cannot tell): a child created
// before that has been observed, or is gone, even if no event ever told of it,
// as after a relist.
func New(clock clock.PassiveClock, reached func(resourceVersion string) bool) *Tracker {
	return &Tracker{clock: clock, cacheReached: reached, byKey: map[string]*expectation{}}
}

// ExpectCreations replaces what owner waits for by n creations.
func (t *Tracker) ExpectCreations(owner ownership.ID, n int) {
	t.set(owner, &expectation{unanswered: n})
}

// ExpectDeletions replaces what owner waits for by the deletion of children.
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

// Created tells that a create was answered with a child, which is then waited
// for unless it has been observed already.
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

// CreationsFailed tells that n creates failed or were never sent.
func (t *Tracker) CreationsFailed(owner ownership.ID, n int) {
	t.update(owner, func(e *expectation) { e.answer(n) })
}

// CreationObserved tells that a child of owner has appeared.
func (t *Tracker) CreationObserved(owner ownership.ID, child types.UID) {
	t.update(owner, func(e *expectation) { e.observe(child) })
}

// DeletionObserved tells that a child of owner is terminating, gone, or no
// longer its child; also that its deletion failed.
func (t *Tracker) DeletionObserved(owner ownership.ID, child types.UID) {
	t.update(owner, func(e *expectation) {
		delete(e.deleted, child)
		e.observe(child)
	})
}

// Satisfied reports whether owner waits for nothing, or has waited for Timeout.
func (t *Tracker) Satisfied(owner ownership.ID) bool {
	return t.Remaining(owner) == 0
}

// Remaining returns how much longer owner can be held back: 0 when satisfied,
// at most Timeout.
func (t *Tracker) Remaining(owner ownership.ID) time.Duration {
	var remaining time.Duration
	t.update(owner, func(e *expectation) {
		if t.pending(e) > 0 {
			remaining = max(0, Timeout-t.clock.Since(e.since))
		}
	})
	return remaining
}

// Unmet reports whether something that owner asked for has not been observed, however
// long ago that was.
func (t *Tracker) Unmet(owner ownership.ID) (unmet bool) {
	t.update(owner, func(e *expectation) { unmet = t.pending(e) > 0 })
	return unmet
}

// Forget drops what owner waits for. A namesake with another UID keeps its own.
func (t *Tracker) Forget(owner ownership.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.byKey[owner.Key]; e != nil && e.uid == owner.UID {
		delete(t.byKey, owner.Key)
	}
}

// ForgetKey drops what any owner under key waits for.
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

// pending is how many observations are awaited.
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
