package generate

import (
	"slices"

	"github.com/kube-gauntlet/gauntlet/faults/admission"
	"github.com/kube-gauntlet/gauntlet/faults/nodes"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// What upstream's controllers are known not to survive is not drawn: a scenario
// that fails on everybody tells nobody from another. The numbers are those of
// harness/check/TRAPS.md.

// neverDown reports whether a Deployment is only scaled up: one without surge
// that is scaled down to what its one ReplicaSet happens to have does not roll
// out any more (stuck-scaling, kubernetes#102551).
func neverDown(create *scenario.Create) bool {
	return create.MaxSurge != nil && *create.MaxSurge == *scenario.Number(0)
}

// weakness is something that users and faults must not bring about together.
type weakness struct {
	trap int
	does func(steps []scenario.Step, faults []scenario.Fault) bool
}

var weaknesses = []weakness{
	// Recreate can wait for the deadline where old pods have failed (#128798).
	{2, func(steps []scenario.Step, faults []scenario.Fault) bool {
		return slices.ContainsFunc(steps, recreates) && slices.ContainsFunc(faults, failsPods)
	}},
	// What went wrong while old ReplicaSets were scaled down is forgotten if the
	// status cannot be written either.
	{3, func(_ []scenario.Step, faults []scenario.Fault) bool {
		return slices.ContainsFunc(faults, spoils("update", "replicasets.apps", "")) &&
			slices.ContainsFunc(faults, spoils("update", "deployments.apps", "status"))
	}},
	// Proportional scaling that fails half-way starts anew from what was written: exact,
	// unless users scale once more before it is tried again (#44734).
	{6, func(steps []scenario.Step, faults []scenario.Fault) bool {
		return slices.ContainsFunc(steps, scalesDeployment) && slices.ContainsFunc(faults, spoils("update", "replicasets.apps", ""))
	}},
	// A young pod that is deleted while the watch of pods is down is waited for.
	{40, func(_ []scenario.Step, faults []scenario.Fault) bool {
		return slices.ContainsFunc(faults, deletesPods) && slices.ContainsFunc(faults, endsWatchOfPods)
	}},
}

// refusesUsers reports whether a user's own pod may be refused, which would end the
// workload there.
func refusesUsers(steps []scenario.Step, faults []scenario.Fault) bool {
	return slices.ContainsFunc(steps, makesPods) && slices.ContainsFunc(faults, keepsPodsOut)
}

// runsOutOfNodes reports whether two faults want to mark nodes in the same way: the
// second might find none that is not marked yet.
func runsOutOfNodes(faults []scenario.Fault) bool {
	for _, name := range []string{nodes.Cordon.Name, nodes.Taint.Name} {
		marks := 0
		for _, fault := range faults {
			if fault.Name == name {
				marks++
			}
		}
		if marks > 1 {
			return true
		}
	}
	return false
}

func makesPods(step scenario.Step) bool {
	create, ok := step.Operation.(*scenario.Create)
	return ok && create.Kind == scenario.Pod
}

func keepsPodsOut(fault scenario.Fault) bool {
	return refusesAll(fault) && fault.Params.Text("resource") != "replicasets.apps"
}

// refusesAll tells the faults that refuse the subject something as long as they last,
// and not so many times.
func refusesAll(fault scenario.Fault) bool {
	return fault.Name == admission.Quota.Name || fault.Name == admission.Policy.Name
}

func beyondUpstream(steps []scenario.Step, faults []scenario.Fault) bool {
	return slices.ContainsFunc(weaknesses, func(w weakness) bool { return w.does(steps, faults) })
}

func recreates(step scenario.Step) bool {
	switch op := step.Operation.(type) {
	case *scenario.Create:
		return op.Strategy == scenario.Recreate
	case *scenario.Configure:
		return op.Strategy == scenario.Recreate
	}
	return false
}

func scalesDeployment(step scenario.Step) bool {
	switch op := step.Operation.(type) {
	case *scenario.Scale:
		return op.Kind == scenario.Deployment
	case *scenario.Rollout:
		return op.Replicas != nil
	}
	return false
}

func failsPods(fault scenario.Fault) bool {
	return fault.Name == "pod-churn" && fault.Params.Text("action") == "fail"
}

func deletesPods(fault scenario.Fault) bool {
	return fault.Name == "pod-churn" && fault.Params.Text("action") == "delete"
}

func endsWatchOfPods(fault scenario.Fault) bool {
	return fault.Name == "watch-end" && fault.Params.Text("resource") == "pods"
}

// spoils tells the faults that spoil requests of a kind.
func spoils(verb, resource, subresource string) func(scenario.Fault) bool {
	return func(fault scenario.Fault) bool {
		p := fault.Params
		return p.Text("verb") == verb && p.Text("resource") == resource && p.Text("subresource") == subresource
	}
}
