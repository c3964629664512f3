package generate

import (
	"slices"

	"github.com/kube-gauntlet/gauntlet/faults/admission"
	"github.com/kube-gauntlet/gauntlet/faults/nodes"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// The generator avoids scenarios that trigger known upstream issues. A scenario that fails
// with every controller does not distinguish controllers. Package check has the issues by
// slug.

// scalesUpOnly reports whether users may only scale a Deployment up. This holds for a
// Deployment without surge: its rollouts stop if it is scaled down to the size of its only
// active ReplicaSet (stuck-scaling, kubernetes/kubernetes#102551).
func scalesUpOnly(create *scenario.Create) bool {
	return create.MaxSurge != nil && *create.MaxSurge == *scenario.Number(0)
}

// upstreamIssue is a known upstream issue that steps and faults may trigger together.
type upstreamIssue struct {
	slug        string
	triggeredBy func(steps []scenario.Step, faults []scenario.Fault) bool
}

var upstreamIssues = []upstreamIssue{
	// The strategy Recreate can wait for the deadline if old pods have failed (#128798).
	{"recreate-failed-pods", func(steps []scenario.Step, faults []scenario.Fault) bool {
		return slices.ContainsFunc(steps, recreates) && slices.ContainsFunc(faults, failsPods)
	}},
	// The controller drops the error of a scale-down of old ReplicaSets if the status
	// update fails too.
	{"swallowed-error", func(_ []scenario.Step, faults []scenario.Fault) bool {
		return slices.ContainsFunc(faults, failsRequests("update", resource(kube.ReplicaSet), "")) &&
			slices.ContainsFunc(faults, failsRequests("update", resource(kube.Deployment), "status"))
	}},
	// After a partial failure, proportional scaling begins again with the sizes that it wrote.
	// The result is exact unless users scale again before the retry (#44734).
	{"repeated-proportional-scaling", func(steps []scenario.Step, faults []scenario.Fault) bool {
		return slices.ContainsFunc(steps, scalesDeployment) && slices.ContainsFunc(faults, failsRequests("update", resource(kube.ReplicaSet), ""))
	}},
	// The controller waits for a new pod that is deleted while its pod watch is down.
	{"unobserved-create-and-delete", func(_ []scenario.Step, faults []scenario.Fault) bool {
		return slices.ContainsFunc(faults, deletesPods) && slices.ContainsFunc(faults, endsPodWatch)
	}},
}

// rejectsUserPods reports whether the API server may reject a pod that a user creates. Such
// a scenario is not valid, because the rejected step would end the workload.
func rejectsUserPods(steps []scenario.Step, faults []scenario.Fault) bool {
	return slices.ContainsFunc(steps, createsPods) && slices.ContainsFunc(faults, rejectsPods)
}

// marksNodesTwice reports whether two faults cordon or taint nodes in the same way. Such a
// scenario is not valid, because the second fault might find no node without the mark.
func marksNodesTwice(faults []scenario.Fault) bool {
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

func createsPods(step scenario.Step) bool {
	create, ok := step.Operation.(*scenario.Create)
	return ok && create.Kind == scenario.Pod
}

func rejectsPods(fault scenario.Fault) bool {
	return rejectsAll(fault) && fault.Params.Text("resource") != resource(kube.ReplicaSet)
}

// rejectsAll reports whether a fault rejects all matching requests of the subject while
// it lasts.
func rejectsAll(fault scenario.Fault) bool {
	return fault.Name == admission.Quota.Name || fault.Name == admission.Policy.Name
}

func triggersUpstreamIssue(steps []scenario.Step, faults []scenario.Fault) bool {
	return slices.ContainsFunc(upstreamIssues, func(w upstreamIssue) bool { return w.triggeredBy(steps, faults) })
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

func endsPodWatch(fault scenario.Fault) bool {
	return fault.Name == "watch-end" && fault.Params.Text("resource") == resource(kube.Pod)
}

// failsRequests returns a function that reports whether a fault acts on requests of a verb
// for a resource.
func failsRequests(verb, resource, subresource string) func(scenario.Fault) bool {
	return func(fault scenario.Fault) bool {
		p := fault.Params
		return p.Text("verb") == verb && p.Text("resource") == resource && p.Text("subresource") == subresource
	}
}
