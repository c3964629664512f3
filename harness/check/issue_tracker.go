package check

import (
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// issueTracker finds known upstream issues that explain why an object has not converged. Several
// checkers read it, so the model has one issueTracker for all of them.
type issueTracker struct {
	tested *testedControllers

	// These fields concern ReplicaSets and ReplicationControllers. A ReplicaSet that waits for its
	// retry may also keep its Deployment from converging.
	backingOff backingOffKeys
	deletes    *openDeletes
	// These fields concern Deployments.
	abandoned          abandonedScaleDowns
	collisions         falseCollisions
	droppedDeployments droppedKeys
	// These fields concern Services.
	lostWrites      lostEndpointsWrites
	unnoticed       unnoticedEnds
	stale           *staleEndpoints
	droppedServices droppedKeys
}

func newIssueTracker(tested *testedControllers) *issueTracker {
	return &issueTracker{
		tested:             tested,
		backingOff:         newBackingOffKeys(),
		deletes:            newOpenDeletes(),
		abandoned:          abandonedScaleDowns{},
		collisions:         falseCollisions{},
		droppedDeployments: newDroppedKeys(func(c *call) bool { return c.rollout != nil }),
		lostWrites:         lostEndpointsWrites{},
		unnoticed:          unnoticedEnds{},
		stale:              newStaleEndpoints(),
		droppedServices:    newDroppedKeys(func(c *call) bool { return c.serviceState != nil }),
	}
}

// observeIssues passes a record to the known upstream issues. If this panics, it removes them from the
// model. A checker that needs them then panics, too, so that only the result of this check is unknown.
func (m *Model) observeIssues(r *history.Record) {
	defer func() {
		if recover() != nil {
			m.issues = nil
		}
	}()
	if m.issues != nil {
		m.issues.observe(m, r)
	}
}

// observe reads the next record of the history. The model must contain this record already.
func (t *issueTracker) observe(m *Model, r *history.Record) {
	ownsPods, rollsOut := t.tested.has(kube.OwnsPods), t.tested.has(kube.RollsOut)
	if ownsPods || rollsOut {
		t.backingOff.observe(m, r)
	}
	if ownsPods {
		t.deletes.observe(m, r)
	}
	if rollsOut {
		t.abandoned.observe(m, r)
		t.collisions.observe(m, r)
		t.droppedDeployments.observe(m, r)
	}
	if t.tested.has(kube.PublishesAddresses) {
		t.lostWrites.observe(m, r)
		t.droppedServices.observe(m, r)
		t.stale.observe(m, r)
		t.unnoticed.observe(m, r)
	}
}
