package check

import (
	"fmt"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// recreateCheck is the row of recreate in All.
var recreateCheck = Check{
	ID:               "recreate",
	Guarantee:        "The new ReplicaSet of a Deployment of strategy Recreate is neither made nor scaled up while the controller knows of an old pod that has not ended.",
	Contract:         "Deployment 10",
	Property:         Safety,
	AllowedBehaviors: []string{"terminating-pods-not-counted", "template-and-replicas-together"},
	New:              newRecreateChecker,
}

// recreateChecker: the new ReplicaSet of a Deployment of strategy Recreate is
// neither made nor scaled up while a pod of an old one runs that the process has
// known all the time.
type recreateChecker struct{ findings }

func newRecreateChecker(Settings) Checker { return &recreateChecker{} }

func (checker *recreateChecker) Observe(m *Model, _ *history.Record) {
	s := checkableScaling(m)
	if s == nil || s.template == nil || s.to == 0 || !s.scalesUp() || s.mayBePending() {
		return
	}
	if !every(s.deployments, func(d *deployment) bool { return d.recreate && d.template.same(s.template) }) {
		return
	}
	view := s.rollout.process.view
	var old []*owner
	for _, set := range s.replicaSetStates[len(s.replicaSetStates)-1] {
		always := every(s.replicaSetStates, func(sets []*owner) bool { return findByName(sets, set.Name) != nil })
		if always && !set.template.same(s.template) {
			old = append(old, set)
		}
	}
	if len(old) == 0 {
		return
	}
	checker.exercised++
	known := view.firstPod(old, func(p *pod) bool { return view.firstCachedAt[p.UID] <= s.rollout.from-lag })
	if known == nil {
		return
	}
	checker.addViolation(func() Evidence {
		e := s.evidence(m, fmt.Sprintf("raised its new ReplicaSet %s to %d while the old pod %s ran", s.name, s.to, known.Name),
			"first all old pods gone, failed or succeeded")
		e.Records = append(e.Records, view.podStateSince[known.UID])
		return e
	})
}
