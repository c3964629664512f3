package check

import (
	"cmp"
	"fmt"
	"maps"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// needlessWritesCheck demands that a process sends at most 5 updates of one object that change
// nothing. It examines each update of an object other than a pod, when the response arrives.
//
// It skips an update that follows a failed update of the same object.
//
// The same limit applies to deletes of an object that the process has received with a
// deletionTimestamp. A finalizer or a foreground deletion keeps such an object, and another delete
// does not end it earlier.
var needlessWritesCheck = Check{
	ID:               "needless-writes",
	Guarantee:        "A process sends at most 5 updates of one object that change nothing. It sends at most 5 deletes of one object after it has received the object's deletionTimestamp. An update of Endpoints that changes only the annotation endpoints.kubernetes.io/last-change-trigger-time counts as no change.",
	Contract:         "ReplicaSet 14, Endpoints 8",
	Property:         Safety,
	Scope:            general,
	ExercisedWhen:    "The subject receives the response to an update of an object other than a pod, or to a delete of an object that it has received with a deletionTimestamp.",
	Ignores:          "Patches. Deletes of pods, deletes of whole collections, and deletes that change the object. An update after a failed update of the same object. An update of a Deployment after a failed call for its ReplicaSets. An update by a controller without a contract after another request for the same reconciled object failed. The first 5 updates and the first 5 deletes of an object without a change.",
	AllowedBehaviors: []string{"lost-response", "truncated-endpoints", "trigger-time-annotation"},
	New:              newNeedlessWritesChecker,
}

// needlessMax is the maximum number of updates of one object that a process may send without
// changing the object. It is also the maximum number of such deletes.
//
// A correct controller may send an unnecessary update for two reasons. First, after a conflict, it
// writes the status again without comparing it with the status in the new version. Second, another
// client may write the same content between the controller's read and its write.
const needlessMax = 5

// needlessWritesChecker reports a process that repeatedly updates an object without changing the
// object.
//
// For Endpoints, the checker compares the update with the cached version on which the update is
// based. It ignores the annotation endpoints.kubernetes.io/last-change-trigger-time.
//
// For other objects, the checker compares the resourceVersion in the update with the one in the
// response. They are equal if the update changed nothing, because the API server then creates no
// new version. If an update has no resourceVersion, the checker uses the version that etcd had when
// the process sent the update.
//
// The checker does not count an update that follows a failed update of the same object. It also
// does not count an update of a Deployment after a failed request for its ReplicaSets. The
// controller writes such a failure into the Deployment's status even if the status already contains
// it. Controllers without a contract may do the same in each retry.
type needlessWritesChecker struct {
	findings
	byProcess map[*process]map[objectName]*needlessWrites // counts of each process, by the updated object
	// failed has the sequence number of the last failed response to a controller without a contract, by
	// the object that it reconciles.
	failed  map[workQueueKey]int64
	deletes needlessDeletes
}

// needlessWrites counts the updates that one process sent for one object and that changed
// nothing.
type needlessWrites struct {
	// failed is true if the latest update of the object failed. For a Deployment, it is also true
	// if another request of its syncs, such as a create of a ReplicaSet, has failed since then.
	failed  bool
	updated int64   // the sequence number of the response to the latest update
	count   int     // the number of updates that changed nothing
	records []int64 // sequence numbers of the latest 5 requests that were counted
}

func newNeedlessWritesChecker(Settings) Checker {
	return &needlessWritesChecker{byProcess: map[*process]map[objectName]*needlessWrites{}, failed: map[workQueueKey]int64{}, deletes: newNeedlessDeletes()}
}

func (checker *needlessWritesChecker) Observe(m *Model, r *history.Record) {
	if r.Process != nil {
		maps.DeleteFunc(checker.byProcess, func(p *process, _ map[objectName]*needlessWrites) bool { return p.ended })
		maps.DeleteFunc(checker.failed, func(key workQueueKey, _ int64) bool { return key.process.ended })
	}
	checker.observeDelete(m, r)
	answered := m.answered
	if answered == nil {
		return
	}
	if d := answered.deployment(); d != nil && !answered.response.OK() {
		checker.of(answered.process, nameOf(d.Ref)).failed = true
	}
	reconciled := answered.generic != nil && answered.queueKey.uid != ""
	failure := checker.failed[answered.queueKey]
	if reconciled && isFailure(answered) {
		checker.failed[answered.queueKey] = m.seq
	}
	if answered.update == nil {
		return
	}
	checker.exercised++
	counted := checker.of(answered.process, nameOf(answered.update.Ref))
	afterFailure := counted.failed || reconciled && failure > counted.updated
	counted.failed, counted.updated = !answered.response.OK(), m.seq
	if counted.failed || afterFailure || !answered.changesNothing() {
		if !counted.failed && counted.count == 0 && failure == 0 { // the counts are empty, so nothing has to be stored
			delete(checker.byProcess[answered.process], nameOf(answered.update.Ref))
		}
		return
	}
	counted.count++
	counted.records = append(counted.records, answered.seq)
	counted.records = counted.records[max(0, len(counted.records)-needlessMax):]
	if counted.count != needlessMax+1 { // one violation for each object, so that the report names all objects
		return
	}
	checker.addViolation(func() Evidence {
		return Evidence{
			Summary:  fmt.Sprintf("%s sent %d updates of %s that changed nothing", answered.process.name, counted.count, answered.update.Ref),
			Expected: fmt.Sprintf("at most %d updates without a change", needlessMax),
			Object:   &answered.update.Ref,
			At:       m.now,
			Records:  append([]int64{}, counted.records...),
		}
	})
}

// of returns the stored counts of the updates that a process sent for the object with the given
// name. The caller adds to these counts. If nothing is stored, the method stores empty counts.
func (checker *needlessWritesChecker) of(p *process, name objectName) *needlessWrites {
	if checker.byProcess[p] == nil {
		checker.byProcess[p] = map[objectName]*needlessWrites{}
	}
	if checker.byProcess[p][name] == nil {
		checker.byProcess[p][name] = &needlessWrites{}
	}
	return checker.byProcess[p][name]
}

// deployment returns the cached Deployment for which the controller sent the request. It returns
// nil if the request was not for a Deployment, or if the Deployment is not in the cache.
func (answered *answeredCall) deployment() *objects.Deployment {
	if answered.rollout == nil {
		return nil
	}
	return answered.process.view.deployments[answered.rollout.uid]
}

// changesNothing reports whether a successful update left the object unchanged. The response then
// has the resourceVersion from before the update, or the Endpoints have the same content as before.
// The result is false for truncated Endpoints, because kube-controller-manager may write other
// addresses in each sync.
func (answered *answeredCall) changesNothing() bool {
	if answered.update.truncated {
		return false
	}
	from := cmp.Or(answered.update.Version, answered.update.committedVersion)
	return answered.update.unchanged || answered.response.Object != nil && answered.response.Object.Version == from
}
