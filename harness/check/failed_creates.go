package check

import (
	"maps"
	"net/http"

	corev1 "k8s.io/api/core/v1"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// failedCreates has the Deployments for which a process failed to create a ReplicaSet. The value is
// true if the process still has to write the status. A successful create removes the Deployment.
//
// After the first failure, a controller sets the condition Progressing to the reason
// ReplicaSetCreateError before it creates a ReplicaSet again (contract Deployment 17). After later
// failures, its cache may lack this status. So only the first failure of a series counts.
//
// The code 409 does not count, because the controller may have to handle a hash collision. A create
// does not count either if the cache lacks the last status that the process wrote. The same applies if
// the cache got a new version of the Deployment less than lag (1 s) before. The controller may have read an older version, and then
// cannot write the status.
//
// In a terminating namespace, every create fails, and the controller reports nothing. It also reports
// nothing for a paused Deployment, and for one without progressDeadlineSeconds.
type failedCreates map[workQueueKey]bool

// observe reads the next record of the history. It reports whether this record is a request that
// tries such a create again.
func (f failedCreates) observe(m *Model, r *history.Record) (again bool) {
	if processStarts(r) {
		dropEndedProcesses(f)
	}
	if answered := m.answered; answered != nil && answered.scaling != nil && answered.scaling.creates {
		f.recordAnswer(answered)
	}
	c := m.sent
	if c == nil || c.rollout == nil {
		return false
	}
	switch {
	case r.Request.Resource == objects.DeploymentResource && r.Request.Subresource == "status":
		if f[c.queueKey] {
			f[c.queueKey] = false
		}
	case c.scaling != nil && c.scaling.creates:
		if again = f[c.queueKey]; again {
			f[c.queueKey] = false // one violation for a series of failures
		}
	}
	maps.DeleteFunc(f, func(key workQueueKey, _ bool) bool { return key.objectGone() })
	return again
}

// recordAnswer notes the response to a create of a ReplicaSet.
func (f failedCreates) recordAnswer(answered *answeredCall) {
	response := answered.response
	if response.OK() {
		delete(f, answered.queueKey)
		return
	}
	if _, known := f[answered.queueKey]; known || response.Code < http.StatusBadRequest || response.Code == http.StatusConflict ||
		response.Cause == string(corev1.NamespaceTerminatingCause) || isRetriedByClient(response) {
		return
	}
	if answered.rollout.changing(answered.sentAt) {
		return
	}
	reports := func(d *objects.Deployment) bool {
		return d.ProgressDeadline != 0 && !d.Paused && !d.Terminating && d.Status.Condition(objects.ProgressingCondition).Reason != objects.ReplicaSetCreateErrorReason
	}
	deployments := answered.scaling.deployments
	f[answered.queueKey] = len(deployments) > 0 && every(deployments, reports)
}
