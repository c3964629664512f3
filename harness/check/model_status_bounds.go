package check

import (
	"net/http"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// statusBounds is between which bounds lies what a process may know of an owner and
// its pods when it reports them from the version of the owner that it was told
// last: since it was told of that, and for the lag before. Whoever writes from it
// has not begun before, however long its calls hang.
type statusBounds struct {
	version             history.Version // the highest that the process was told of
	since               time.Duration   // when it was told of that first
	generation          rangeSinceIdle
	replicas            rangeSinceIdle
	fullyLabeled        rangeSinceIdle
	ready               rangeSinceIdle
	terminatingReplicas rangeSinceIdle
	orphans             rangeSinceIdle
	minReady            rangeSinceIdle // in seconds
	failing             rangeSinceIdle // 1 where the status said that pods could not be made or deleted
	// becameUnready counts pods that were ready and are so no more, or not the owner's;
	// failures, calls for its pods that failed; missed, deletes of pods that were
	// gone already.
	becameUnready   countSinceIdle
	failures        countSinceIdle
	deletesNotFound countSinceIdle
	// unreportedFailure: a call for its pods has failed for good since the process last reported,
	// when the status did not say so yet.
	unreportedFailure bool
}

// update takes in what has become of the owner, nil if it is gone, and its pods.
func (bounds *statusBounds) update(o *owner, before, now podCounts, replaced bool, at time.Duration) {
	if o != nil && o.Version > bounds.version { // a list may go back, and come again
		bounds.version, bounds.since = o.Version, at
		bounds.startAtVersion(at)
	}
	if replaced { // on the way a cache may have some of the old pods and some of the new
		bounds.record(podCounts{}, at)
		bounds.record(before.plus(now), at)
		bounds.becameUnready.add(at, min(before.ready, now.ready)) // each may have been another's
	}
	bounds.record(now, at)
	bounds.becameUnready.add(at, max(0, before.ready-now.ready))
	if o == nil {
		return
	}
	bounds.generation.record(at, int(o.generation))
	bounds.minReady.record(at, int(o.minReady/time.Second))
	failing := 0
	if o.failing {
		failing = 1
	}
	bounds.failing.record(at, failing)
}

func (bounds *statusBounds) record(counts podCounts, at time.Duration) {
	bounds.replicas.record(at, counts.replicas)
	bounds.fullyLabeled.record(at, counts.fullyLabeled)
	bounds.ready.record(at, counts.ready)
	bounds.terminatingReplicas.record(at, counts.terminatingReplicas)
	bounds.orphans.record(at, counts.orphans)
}

// recordCallResult takes in the answer to a create or delete, and whether it was certainly for
// this owner.
func (bounds *statusBounds) recordCallResult(ok, certain bool, r *history.Response, at time.Duration) {
	if ok {
		return
	}
	bounds.failures.add(at, 1)
	// That a namespace is terminating is no failure (terminating-namespace-creates), and of what got no
	// answer at all one may think what one likes.
	if certain && r.Code >= 400 && r.Code != http.StatusForbidden && r.Code != http.StatusNotFound && !isRetriedByClient(r) && bounds.failing.sinceIdle.high == 0 {
		bounds.unreportedFailure = true
	}
}

// startAtVersion begins anew with what may be known now.
func (bounds *statusBounds) startAtVersion(at time.Duration) {
	for _, values := range []*rangeSinceIdle{
		&bounds.generation, &bounds.replicas, &bounds.fullyLabeled, &bounds.ready, &bounds.terminatingReplicas, &bounds.orphans, &bounds.minReady, &bounds.failing,
	} {
		values.becameIdle(at)
	}
	bounds.becameUnready.becameIdle(at)
	bounds.failures.becameIdle(at)
	bounds.deletesNotFound.becameIdle(at)
}

// plus adds up what two tallies say of pods that are reported.
func (counts podCounts) plus(other podCounts) podCounts {
	counts.replicas += other.replicas
	counts.fullyLabeled += other.fullyLabeled
	counts.ready += other.ready
	counts.terminatingReplicas += other.terminatingReplicas
	counts.orphans += other.orphans
	return counts
}

// fieldBounds is a number in a status, and between which bounds it may lie.
type fieldBounds struct {
	field     string
	written   int
	low, high int
}
