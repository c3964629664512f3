package check

import (
	"net/http"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// knowledge is between which bounds lies what a process may know of an owner and
// its pods when it reports them from the version of the owner that it was told
// last: since it was told of that, and for the lag before. Whoever writes from it
// has not begun before, however long its calls hang.
type knowledge struct {
	version    history.Version // the highest that the process was told of
	since      time.Duration   // when it was told of that first
	generation sinceIdle
	replicas   sinceIdle
	labeled    sinceIdle
	ready      sinceIdle
	leaving    sinceIdle
	orphans    sinceIdle
	minReady   sinceIdle // in seconds
	failing    sinceIdle // 1 where the status said that pods could not be made or deleted
	// unready counts pods that were ready and are so no more, or not the owner's;
	// failures, calls for its pods that failed; missed, deletes of pods that were
	// gone already.
	unready  countSinceIdle
	failures countSinceIdle
	missed   countSinceIdle
	// unsaid: a call for its pods has failed for good since the process last reported,
	// when the status did not say so yet.
	unsaid bool
}

// look takes in what has become of the owner, nil if it is gone, and its pods.
func (k *knowledge) look(o *owner, before, now tally, replaced bool, at time.Duration) {
	if o != nil && o.Version > k.version { // a list may go back, and come again
		k.version, k.since = o.Version, at
		k.renew(at)
	}
	if replaced { // on the way a cache may have some of the old pods and some of the new
		k.note(tally{}, at)
		k.note(before.plus(now), at)
		k.unready.add(at, min(before.ready, now.ready)) // each may have been another's
	}
	k.note(now, at)
	k.unready.add(at, max(0, before.ready-now.ready))
	if o == nil {
		return
	}
	k.generation.note(at, int(o.generation))
	k.minReady.note(at, int(o.minReady/time.Second))
	failing := 0
	if o.failing {
		failing = 1
	}
	k.failing.note(at, failing)
}

func (k *knowledge) note(t tally, at time.Duration) {
	k.replicas.note(at, t.replicas)
	k.labeled.note(at, t.labeled)
	k.ready.note(at, t.ready)
	k.leaving.note(at, t.leaving)
	k.orphans.note(at, t.orphans)
}

// manage takes in the answer to a create or delete, and whether it was certainly for
// this owner.
func (k *knowledge) manage(ok, certain bool, r *history.Response, at time.Duration) {
	if ok {
		return
	}
	k.failures.add(at, 1)
	// That a namespace is terminating is no failure (trap 18), and of what got no
	// answer at all one may think what one likes.
	if certain && r.Code >= 400 && r.Code != http.StatusForbidden && r.Code != http.StatusNotFound && !repeats(r) && k.failing.whole.high == 0 {
		k.unsaid = true
	}
}

// renew begins anew with what may be known now.
func (k *knowledge) renew(at time.Duration) {
	for _, s := range []*sinceIdle{
		&k.generation, &k.replicas, &k.labeled, &k.ready, &k.leaving, &k.orphans, &k.minReady, &k.failing,
	} {
		s.idle(at)
	}
	k.unready.idle(at)
	k.failures.idle(at)
	k.missed.idle(at)
}

// plus adds up what two tallies say of pods that are reported.
func (t tally) plus(other tally) tally {
	t.replicas += other.replicas
	t.labeled += other.labeled
	t.ready += other.ready
	t.leaving += other.leaving
	t.orphans += other.orphans
	return t
}

// statusClaim is a number in a status, and between which bounds it may lie.
type statusClaim struct {
	field     string
	said      int
	low, high int
}
