package check

import (
	"fmt"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// revisionHistoryLimitCheck is the row of revision-history-limit in All.
var revisionHistoryLimitCheck = Check{
	ID:               "revision-history-limit",
	Guarantee:        "The ReplicaSets that a Deployment's controller deletes are old, empty, above the history limit and of the lowest revisions, and the rollout is paused or at its end.",
	Contract:         "Deployment 15",
	Property:         Safety,
	AllowedBehaviors: []string{"revision-may-decrease"},
	New:              newRevisionHistoryLimitChecker,
}

// revisionHistoryLimitChecker: a process deletes a ReplicaSet only where, in some way in which
// it may have had them in mind, that is old and empty, the rollout is paused or
// at its end, and there are so many more than the limit of a higher revision.
type revisionHistoryLimitChecker struct{ findings }

func newRevisionHistoryLimitChecker(Settings) Checker { return &revisionHistoryLimitChecker{} }

func (checker *revisionHistoryLimitChecker) Observe(m *Model, r *history.Record) {
	c := m.sent
	if c == nil || c.rollout == nil || r.Request.Resource != replicaSetResource || r.Request.Verb != "delete" {
		return
	}
	if len(c.rollout.deployments) == 0 || len(c.rollout.replicaSets) == 0 || c.process.view.reachedVersion[replicaSetResource] == 0 {
		return
	}
	checker.exercised++
	why := ""
	for _, d := range c.rollout.deployments {
		for _, state := range c.rollout.replicaSets {
			for _, sets := range [][]*owner{state.value.cached, state.value.withOwnWrites} {
				if why = d.value.reasonToKeep(sets, r.Request.Name); why == "" {
					return
				}
			}
		}
	}
	d := c.rollout.deployments[len(c.rollout.deployments)-1].value
	checker.addViolation(func() Evidence {
		return m.evidenceOf(&d.Ref, fmt.Sprintf("%s: %s deleted its ReplicaSet %s: %s", d, c.process.name, r.Request.Name, why),
			"only old and empty ReplicaSets deleted, above the limit, the lowest revisions first, when the rollout is at its end")
	})
}

// reasonToKeep says why a ReplicaSet may not be deleted, "" if it may.
func (d *deployment) reasonToKeep(sets []*owner, name string) string {
	set, now := findByName(sets, name), oldestOf(sets, d.template)
	switch {
	case set == nil:
		return "it did not know of it"
	case set == now:
		return "it is the new one"
	case set.replicas != 0 || set.status.Replicas != 0:
		return fmt.Sprintf("it asks for %d replicas and has %d", set.replicas, set.status.Replicas)
	case set.generation > set.status.ObservedGeneration:
		return "its controller has not seen what it asks for"
	case d.terminating || !d.paused && !d.rolloutEnded(sets, now):
		return "the rollout was not at its end"
	}
	older, old := 0, 0
	for _, other := range sets {
		if other == now {
			continue
		}
		old++
		if other.revision < set.revision {
			older++
		}
	}
	if older >= old-d.historyLimit {
		return fmt.Sprintf("of %d old ones, with a limit of %d, it comes after %d", old, d.historyLimit, older)
	}
	return ""
}
