package generate

import (
	"slices"

	"github.com/kube-gauntlet/gauntlet/faults/admission"
	"github.com/kube-gauntlet/gauntlet/faults/nodes"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// The generator avoids scenarios that trigger known bugs of Kubernetes. Such a scenario fails
// even with a controller that has no other bug, so the failure shows nothing new. A profile with a
// workload of hours avoids only the bugs that no check recognizes. The slugs below are those of
// check.KnownIssues.

// scalesUpOnly reports whether users may only scale a Deployment up, because its maxSurge is 0. A
// rollout of such a Deployment stops if a user scales the Deployment down to the size of the only
// active ReplicaSet. This is the upstream bug stuck-scaling, kubernetes/kubernetes#102551.
func (p *Profile) scalesUpOnly(create *scenario.Create) bool {
	return !p.long && create.MaxSurge != nil && *create.MaxSurge == *scenario.Number(0)
}

// upstreamIssue is a known bug of Kubernetes. It says which faults together may trigger
// the bug.
type upstreamIssue struct {
	slug        string // the slug of the issue, as in check.KnownIssues
	recognized  bool   // true if a check recognizes the bug, so that the verdict is known-upstream
	triggeredBy func(faults []scenario.Fault) bool
}

// upstreamIssues are the known bugs of Kubernetes that generated scenarios must not trigger. A
// profile with a workload of hours may trigger those that a check recognizes.
var upstreamIssues = []upstreamIssue{
	// The Deployment controller drops the error of a failed scale-down of old ReplicaSets if
	// the status update of the Deployment fails too.
	{"swallowed-error", true, func(faults []scenario.Fault) bool {
		return slices.ContainsFunc(faults, failsRequests("update", resource(kube.ReplicaSet), "")) &&
			slices.ContainsFunc(faults, failsRequests("update", resource(kube.Deployment), "status"))
	}},
	// The controller waits for the watch events of a pod that was created and deleted while
	// the pod watch of the controller was down.
	{"unobserved-create-and-delete", false, func(faults []scenario.Fault) bool {
		return slices.ContainsFunc(faults, deletesPods) && slices.ContainsFunc(faults, endsPodWatch)
	}},
}

// rejectsUserPods reports whether one of the faults may reject a pod that one of the steps creates.
// The generator avoids such faults: a rejected create makes the step fail, and a failed step ends
// the workload.
func rejectsUserPods(steps []scenario.Step, faults []scenario.Fault) bool {
	return slices.ContainsFunc(steps, createsPods) && slices.ContainsFunc(faults, rejectsPods)
}

// marksNodesTwice reports whether a scenario has two cordon faults or two taint faults. The
// generator does not use such faults, because the second fault might find no node without the
// cordon or taint.
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

// rejectsPods reports whether a fault, such as a pod quota, makes the API server reject all creates
// of pods.
func rejectsPods(fault scenario.Fault) bool {
	return rejectsAll(fault) && fault.Params.Text("resource") != resource(kube.ReplicaSet)
}

// rejectsAll reports whether a fault is a quota or an admission policy. Such a fault rejects all
// matching requests while it is active.
func rejectsAll(fault scenario.Fault) bool {
	return fault.Name == admission.Quota.Name || fault.Name == admission.Policy.Name
}

// triggersUpstreamIssue reports whether the faults together may trigger a known bug of
// Kubernetes that the profile avoids.
func (p *Profile) triggersUpstreamIssue(faults []scenario.Fault) bool {
	return slices.ContainsFunc(upstreamIssues, func(w upstreamIssue) bool {
		return !(p.long && w.recognized) && w.triggeredBy(faults)
	})
}

func deletesPods(fault scenario.Fault) bool {
	return fault.Name == "pod-churn" && fault.Params.Text("action") == "delete"
}

// endsPodWatch reports whether a fault ends watches of pods. A fault that breaks a connection ends
// all watches on the connection.
func endsPodWatch(fault scenario.Fault) bool {
	p := fault.Params
	return fault.Name == "watch-end" && p.Text("resource") == resource(kube.Pod) || p.Text("how") == "disconnected" || p.Text("breaks") == "connection"
}

// failsRequests returns a function that reports whether a fault acts on requests with the given
// verb, resource and subresource.
func failsRequests(verb, resource, subresource string) func(scenario.Fault) bool {
	return func(fault scenario.Fault) bool {
		p := fault.Params
		return p.Text("verb") == verb && p.Text("resource") == resource && p.Text("subresource") == subresource
	}
}
