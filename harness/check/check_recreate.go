package check

import (
	"fmt"
	"slices"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// recreateCheck demands that the strategy Recreate starts the new ReplicaSet only after the old
// pods have ended. It examines each create and each scale-up of the new ReplicaSet of a Deployment
// with this strategy.
//
// It skips a Deployment that may be paused or being scaled, and a Deployment without an old
// ReplicaSet.
var recreateCheck = Check{
	ID:               "recreate",
	Guarantee:        "With strategy Recreate, a controller neither creates nor scales up the new ReplicaSet while its cache has a pod of an old ReplicaSet that is neither Failed nor Succeeded.",
	Contract:         "Deployment 10",
	Property:         Safety,
	Scope:            contractOf(kube.RollsOut),
	ExercisedWhen:    "The subject creates or scales up the new ReplicaSet of a Deployment that has the strategy Recreate and an old ReplicaSet.",
	AllowedBehaviors: []string{"terminating-pods-not-counted", "template-and-replicas-together"},
	New:              newRecreateChecker,
}

// recreateChecker reports a create or scale-up of the new ReplicaSet while a pod of an old
// ReplicaSet still runs.
//
// The process may have decided on the scale-up some time ago. The checker therefore considers
// only pods that reached the cache at least lag (1 s) before the earliest possible time of this
// decision.
//
// Known upstream issue rollback-overlap: a process that executes a rollback first creates the
// ReplicaSet of the current template, even if old pods run.
type recreateChecker struct{ findings }

func newRecreateChecker(s Settings) Checker { return &recreateChecker{findings{upstream: s.Upstream}} }

func (checker *recreateChecker) Observe(m *Model, _ *history.Record) {
	s := checkableScaling(m)
	if s == nil || s.template == nil || s.to == 0 || !s.scalesUp() || s.mayBePending() {
		return
	}
	if !every(s.deployments, func(d *objects.Deployment) bool { return d.Recreate && d.Template.Same(s.template) }) {
		return
	}
	view := s.rollout.process.view
	var old []*objects.Owner
	for _, set := range s.replicaSetStates[len(s.replicaSetStates)-1] {
		always := every(s.replicaSetStates, func(sets []*objects.Owner) bool { return findByName(sets, set.Name) != nil })
		if always && !set.Template.Same(s.template) {
			old = append(old, set)
		}
	}
	if len(old) == 0 {
		return
	}
	checker.exercised++
	running := view.firstPod(old, func(p *objects.Pod) bool { return view.firstCachedAt[p.UID] <= s.rollout.from-lag })
	if running == nil {
		return
	}
	describe := func() Evidence {
		e := s.evidence(m, fmt.Sprintf("scaled the new ReplicaSet %s up to %d while the old %s had not terminated", s.name, s.to, podName(running)),
			"a scale-up only after all old pods are deleted, Failed or Succeeded")
		e.Records = append(e.Records, view.podStateSince[running.UID])
		return e
	}
	if s.creates && slices.ContainsFunc(s.deployments, func(d *objects.Deployment) bool { return d.RollbackTo >= 0 }) {
		checker.addKnownViolation(rollbackOverlap, describe)
		return
	}
	checker.addViolation(describe)
}
