package check

import (
	"fmt"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// revisionHistoryLimitCheck demands that a controller deletes only old ReplicaSets without
// replicas, down to revisionHistoryLimit. It examines each delete of a Deployment's ReplicaSet by a
// controller under test.
//
// It skips a delete if the cache of the process does not contain the Deployment or its ReplicaSets.
var revisionHistoryLimitCheck = Check{
	ID:               "revision-history-limit",
	Guarantee:        "A controller deletes only old ReplicaSets of a Deployment that have no replicas, lowest revision first, down to revisionHistoryLimit, and only while the rollout is complete or paused.",
	Contract:         "Deployment 15",
	Property:         Safety,
	Scope:            contractOf(kube.RollsOut),
	ExercisedWhen:    "The subject deletes a ReplicaSet of a Deployment.",
	AllowedBehaviors: []string{"revision-may-decrease"},
	New:              newRevisionHistoryLimitChecker,
}

// revisionHistoryLimitChecker reports deletes of ReplicaSets that no cached version of the
// Deployment and its ReplicaSets justifies.
type revisionHistoryLimitChecker struct{ findings }

func newRevisionHistoryLimitChecker(Settings) Checker { return &revisionHistoryLimitChecker{} }

func (checker *revisionHistoryLimitChecker) Observe(m *Model, r *history.Record) {
	c := m.sent
	if c == nil || c.rollout == nil || r.Request.Resource != objects.ReplicaSetResource || r.Request.Verb != "delete" {
		return
	}
	if len(c.rollout.deployments) == 0 || len(c.rollout.replicaSets) == 0 || c.process.view.reachedVersion[objects.ReplicaSetResource] == 0 {
		return
	}
	checker.exercised++
	reason := ""
	for _, d := range c.rollout.deployments {
		for _, state := range c.rollout.replicaSets {
			for _, sets := range [][]*objects.Owner{state.value.cached, state.value.withOwnWrites} {
				if reason = reasonToKeep(d.value, sets, r.Request.Name); reason == "" {
					return
				}
			}
		}
	}
	d := c.rollout.deployments[len(c.rollout.deployments)-1].value
	checker.addViolation(func() Evidence {
		return m.evidenceOf(&d.Ref, fmt.Sprintf("%s: %s deleted ReplicaSet %s/%s: %s", d, c.process.name, d.Namespace, r.Request.Name, reason),
			"deletes only of old ReplicaSets without replicas, lowest revision first, down to revisionHistoryLimit, after the rollout")
	})
}

// reasonToKeep returns the reason why the controller must not delete the ReplicaSet with the
// given name. It returns "" if the controller may delete it.
//
// The parameters d and sets are one cached state of the Deployment and all its ReplicaSets.
func reasonToKeep(d *objects.Deployment, sets []*objects.Owner, name string) string {
	set, current := findByName(sets, name), oldestOf(sets, d.Template)
	switch {
	case set == nil:
		return "it is not in the cache"
	case set == current:
		return "it is the new ReplicaSet"
	case set.Replicas != 0 || set.Status.Replicas != 0:
		return fmt.Sprintf("it has spec.replicas %d and status.replicas %d", set.Replicas, set.Status.Replicas)
	case set.Generation > set.Status.ObservedGeneration:
		return "its status.observedGeneration is behind its generation"
	case d.Terminating:
		return "the Deployment is terminating"
	case d.Paused && d.RollbackTo >= 0:
		return "the Deployment is paused, and a rollback is requested"
	case !d.Paused && !rolloutEnded(d, sets, current):
		return "the rollout is not complete"
	}
	older, old := 0, 0
	for _, other := range sets {
		if other == current {
			continue
		}
		old++
		if other.Revision < set.Revision {
			older++
		}
	}
	if older >= old-d.RevisionHistoryLimit {
		return fmt.Sprintf("%d of %d old ReplicaSets have a lower revision, and revisionHistoryLimit is %d", older, old, d.RevisionHistoryLimit)
	}
	return ""
}
