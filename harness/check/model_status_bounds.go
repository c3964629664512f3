package check

import (
	"net/http"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// statusBounds are the bounds of the values that a process may report in the status of an
// owner. The bounds cover the time from lag before the process received the version that
// the status write is based on. Earlier values do not matter, because a sync begins only
// after the process has received that version.
type statusBounds struct {
	version             history.Version // the highest resourceVersion of the owner that was delivered
	since               time.Duration   // when that version was first delivered
	generation          rangeSinceIdle
	replicas            rangeSinceIdle
	fullyLabeled        rangeSinceIdle
	ready               rangeSinceIdle
	terminatingReplicas rangeSinceIdle
	orphans             rangeSinceIdle
	minReady            rangeSinceIdle // in seconds
	failing             rangeSinceIdle // 1 if the status had the condition ReplicaFailure=True
	// becameUnready counts ready pods that became unready or left the owner. failures
	// counts failed calls for its pods. deletesNotFound counts deletes that returned 404.
	becameUnready   countSinceIdle
	failures        countSinceIdle
	deletesNotFound countSinceIdle
	// unreportedFailure is true if a call for the owner's pods has failed since the last
	// status write, and the status does not have the condition ReplicaFailure yet.
	unreportedFailure bool
}

// update records the current state of the owner and of its pods. The owner is nil if it no
// longer exists.
func (bounds *statusBounds) update(o *objects.Owner, before, now podCounts, replaced bool, at time.Duration) {
	if o != nil && o.Version > bounds.version { // a list may return an older version
		bounds.version, bounds.since = o.Version, at
		bounds.startAtVersion(at)
	}
	if replaced { // a cache that applies a list may contain some of the old and some of the new pods
		bounds.record(podCounts{}, at)
		bounds.record(before.plus(now), at)
		bounds.becameUnready.add(at, min(before.ready, now.ready)) // the ready pods may be other pods than before
	}
	bounds.record(now, at)
	bounds.becameUnready.add(at, max(0, before.ready-now.ready))
	if o == nil {
		return
	}
	bounds.generation.record(at, int(o.Generation))
	bounds.minReady.record(at, int(o.MinReady/time.Second))
	failing := 0
	if o.Failing {
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

// recordCallResult records the result of a create or delete. The parameter certain is true
// if the call was certainly for this owner.
func (bounds *statusBounds) recordCallResult(ok, certain bool, r *history.Response, at time.Duration) {
	if ok {
		return
	}
	bounds.failures.add(at, 1)
	// A terminating namespace (403, 404) does not count as a failure (allowed behavior
	// terminating-namespace-creates). A call without any response may count or not.
	if certain && r.Code >= 400 && r.Code != http.StatusForbidden && r.Code != http.StatusNotFound && !isRetriedByClient(r) && bounds.failing.sinceIdle.high == 0 {
		bounds.unreportedFailure = true
	}
}

// startAtVersion forgets values that are older than the recent window.
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

// plus adds two podCounts. It adds only the counts that a status reports.
func (counts podCounts) plus(other podCounts) podCounts {
	counts.replicas += other.replicas
	counts.fullyLabeled += other.fullyLabeled
	counts.ready += other.ready
	counts.terminatingReplicas += other.terminatingReplicas
	counts.orphans += other.orphans
	return counts
}

// fieldBounds is a number in a status, and its bounds.
type fieldBounds struct {
	field     string
	written   int
	low, high int
}
