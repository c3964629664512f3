package scenario

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// awaitTimes reports an error for each await whose condition is never met within its time. The shortest time follows from
// cluster.podStartDelay, minReadySeconds and settle.quiet. An await is only considered in the step that creates its object or
// rolls it out, because earlier steps may take any time.
func (v *validator) awaitTimes() {
	if v.invalid("cluster.podStartDelay") || v.invalid("settle.quiet") {
		return
	}
	ready := v.scenario.podsStartAnew()
	deployments := map[string]*Create{} // the create steps so far, by the names of the Deployments
	for i := range v.scenario.Workload {
		step := &v.scenario.Workload[i]
		var shortest wait
		switch op := step.Operation.(type) {
		case *Create:
			if op.Kind == Deployment {
				deployments[op.Name] = op
			}
			if op.pods() > 0 && (op.Kind != Deployment || v.scenario.createdMax(ReplicaSet, "") == 0) { // a Deployment may adopt a ReplicaSet
				shortest = v.scenario.podWait(op)
			}
		case *Rollout:
			create := deployments[op.Name]
			if create != nil && *create.Replicas > 0 && (op.Replicas == nil || *op.Replicas > 0) && !create.Paused && !v.scenario.rolledOut(op.Name, i) && !v.scenario.changesBefore(create.Target, i) {
				shortest = v.scenario.podWait(create)
			}
		}
		await := step.Await
		if await == nil {
			continue
		}
		target, acts := step.Target()
		switch {
		case await.Until == Quiet:
			shortest = wait{v.scenario.Settle.Quiet, 0, []string{"settle.quiet is " + v.scenario.Settle.Quiet.String()}}
		case !ready || !acts || await.Target != target:
			continue
		case operationOf(step.Operation).name == "rollout" && await.Until != Complete:
			continue // the old pods may still be ready
		}
		v.awaitTime(stepPath(i)+".await", await, shortest)
	}
}

// wait is the shortest time of an await, and its reasons.
type wait struct {
	start     time.Duration // until the pods are ready
	available time.Duration // from then until they are available
	reasons   []string
}

// podWait returns the shortest time that the pods of a new object need until they are ready, and then available.
func (s *Scenario) podWait(create *Create) wait {
	shortest := wait{start: s.Cluster.PodStartDelay, reasons: []string{"cluster.podStartDelay is " + s.Cluster.PodStartDelay.String()}}
	if create.MinReadySeconds > 0 { // the status has times in seconds, so that up to one second may be missing
		shortest.available = time.Duration(create.MinReadySeconds-1) * time.Second
		shortest.reasons = append(shortest.reasons, fmt.Sprintf("minReadySeconds is %d", create.MinReadySeconds))
	}
	return shortest
}

// awaitTime reports an error if an await ends before the shortest time of its condition.
func (v *validator) awaitTime(at string, await *Await, shortest wait) {
	least, reasons := shortest.start, shortest.reasons
	switch {
	case await.Until == Available || await.Until == Complete:
		least += shortest.available
	case await.Until == Ready || await.Until == "condition=Ready" && await.Kind == Pod:
		reasons = reasons[:min(1, len(reasons))]
	case await.Until != Quiet:
		return
	}
	if shortest.start == 0 && len(reasons) > 1 {
		reasons = reasons[1:]
	}
	found := await.Within.String()
	if v.scenario.source != nil && !v.scenario.source.has(at+".within") {
		found = "nothing, which means " + found
	}
	v.check(await.Within >= least, at+".within", "found %s, but %s takes longer, because %s; expected at least %s", found, await.Until, strings.Join(reasons, " and "), least)
}

// podsStartAnew reports whether each object starts new pods after its creation. It returns false if the object may adopt pods that
// are ready, or if another clock may make pods available earlier.
func (s *Scenario) podsStartAnew() bool {
	if !s.onlyKnownWriters() || s.createdMax(Pod, "") > 0 && s.createdMax(Pod, "") < len(s.creates()) || len(s.userCreates()) > 0 {
		return false
	}
	adoptable := slices.ContainsFunc(s.StepsOfAllUsers(), func(step Step) bool {
		switch op := step.Operation.(type) {
		case *Label, *Patch, *Select:
			return true
		case *Delete:
			return op.Propagation == Orphan
		}
		return false
	})
	return !adoptable && !slices.ContainsFunc(s.Faults, func(f Fault) bool {
		return slices.Contains([]string{"pod-relabel", "pod-disown", "clock-skew", "user-edit"}, f.Name)
	})
}

// changesBefore reports whether a step of the workload before an index scales, configures, pauses or deletes an object.
func (s *Scenario) changesBefore(target Target, index int) bool {
	return slices.ContainsFunc(s.Workload[:index], func(step Step) bool {
		found, acts := step.Target()
		switch step.Operation.(type) {
		case *Scale, *Configure, *Pause, *Delete:
			return acts && found == target
		}
		return false
	})
}
