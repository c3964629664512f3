package check

import (
	"net/http"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// statusBounds contains, for each field of an owner's status, the lowest and highest value that a
// process may write. The owner is a ReplicaSet or ReplicationController.
//
// A status write is based on one version of the owner. Its sync began after the process had
// received this version. The ranges therefore begin one to two seconds (lag) before that time.
type statusBounds struct {
	version             history.Version // the owner's highest resourceVersion that was delivered to the process
	since               time.Duration   // when that version was delivered first
	generation          rangeSinceIdle
	replicas            rangeSinceIdle
	fullyLabeled        rangeSinceIdle
	ready               rangeSinceIdle
	terminatingReplicas rangeSinceIdle
	orphans             rangeSinceIdle
	minReady            rangeSinceIdle // the owner's spec.minReadySeconds
	failing             rangeSinceIdle // 1 while the cached status has ReplicaFailure=True, else 0
	// becameUnready counts ready pods of the owner that became not ready or were removed. The
	// process may still report such pods as available.
	becameUnready countSinceIdle
	// failures counts the failed creates and deletes of the owner's pods. A failure justifies the
	// condition ReplicaFailure.
	failures countSinceIdle
	// deletesNotFound counts deletes of the owner's pods with response 404. Such a delete alone
	// does not justify the condition ReplicaFailure.
	deletesNotFound countSinceIdle
	// unreportedFailure is true if a create or delete of the owner's pods has failed since the last
	// status write. The next status write must then set ReplicaFailure=True. The field stays false
	// while the owner's cached status has this condition.
	unreportedFailure bool
	// createFailed and deleteFailed are true if a create or delete of the owner's pods has ever failed
	// in the process.
	createFailed, deleteFailed bool
	// newestGeneration is the highest generation of the owner that the cache has ever contained.
	// firstCached is when the cache first contained the owner.
	newestGeneration int64
	firstCached      time.Duration
}

// update extends the ranges by the present cached state of the owner and its pods. The parameter
// o is the owner, or nil if the cache does not contain it. The parameters before and now are the
// previous and the present counts of the owner's pods.
//
// The parameter relisted is true if a list has just replaced the cached objects. A sync may then
// have counted any mix of old and new pods.
func (bounds *statusBounds) update(o *objects.Owner, before, now podCounts, relisted bool, at time.Duration) {
	if o != nil && o.Version > bounds.version { // a list may return an older version
		bounds.version, bounds.since = o.Version, at
		bounds.startAtVersion(at)
	}
	if relisted { // while an informer applies a list, its cache contains some of the old and some of the new pods
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
	if bounds.newestGeneration == 0 {
		bounds.firstCached = at
	}
	bounds.newestGeneration = max(bounds.newestGeneration, o.Generation)
	bounds.minReady.record(at, int(o.MinReady/time.Second))
	failing := 0
	if o.Failing {
		failing = 1
	}
	bounds.failing.record(at, failing)
}

// record extends the ranges by the given pod counts, which the process may report from now on.
func (bounds *statusBounds) record(counts podCounts, at time.Duration) {
	bounds.replicas.record(at, counts.replicas)
	bounds.fullyLabeled.record(at, counts.fullyLabeled)
	bounds.ready.record(at, counts.ready)
	bounds.terminatingReplicas.record(at, counts.terminatingReplicas)
	bounds.orphans.record(at, counts.orphans)
}

// recordCallResult counts a failed create or delete of a pod. It does nothing if the parameter ok
// is true, because the request then succeeded.
//
// The parameter ownerCertain is false if the process may have sent the request for another owner.
// The status of this owner then need not report the failure.
func (bounds *statusBounds) recordCallResult(ok, ownerCertain bool, r *history.Response, at time.Duration) {
	if ok {
		return
	}
	bounds.failures.add(at, 1)
	// The status need not report a 403 or 404, which may come from a terminating namespace
	// (allowed behavior terminating-namespace-creates). It need not report a call without a
	// response either.
	if ownerCertain && r.Code >= 400 && r.Code != http.StatusForbidden && r.Code != http.StatusNotFound && !isRetriedByClient(r) && bounds.failing.sinceIdle.high == 0 {
		bounds.unreportedFailure = true
	}
}

// startAtVersion begins new ranges when the process receives a new version of the owner. It forgets
// values from before the last one to two seconds. A sync of the new version reads only current
// values.
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

// plus returns the sum of two podCounts. It adds only the counts on which the owner's status
// depends, such as ready. The fields controlled and terminating of the result are those of the
// receiver.
func (counts podCounts) plus(other podCounts) podCounts {
	counts.replicas += other.replicas
	counts.fullyLabeled += other.fullyLabeled
	counts.ready += other.ready
	counts.terminatingReplicas += other.terminatingReplicas
	counts.orphans += other.orphans
	return counts
}

// fieldBounds is a number that a process wrote to a status field, together with the allowed
// range of this number.
type fieldBounds struct {
	field     string // the name of the field, such as readyReplicas
	written   int    // the value that the process wrote
	low, high int    // the lowest and the highest allowed value
}
