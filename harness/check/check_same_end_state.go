package check

import (
	"slices"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/baseline"
)

// sameEndStateCheck demands that a run ends with the same objects as runs without faults. Faults
// may delay what a controller does for a workload, but must not change the result. If a step of the
// workload awaits a condition that is never met, the remaining steps do not take place. The check then
// reports the step.
//
// The comment of [baseline.Observer.End] says which objects and fields the check compares.
var sameEndStateCheck = Check{
	ID:            "same-end-state",
	Guarantee:     "After the faults are healed, the steps of the workload complete, and the objects in the cluster become the same as in runs of the same workload without faults.",
	Contract:      "Kubernetes documentation, Controllers, Desired versus current state",
	Property:      Liveness,
	Scope:         general,
	ExercisedWhen: "A run ends that has a baseline, that is, saved results of runs without faults.",
	Ignores: "Runs without a baseline. Steps of the workload that never complete, if a controller under test has a contract: other checks examine its convergence. Runs in which a step of the workload failed for another reason than an awaited condition. Values that differ between the runs without faults. Annotations, messages of conditions, and the fields of pods, endpoints and ControllerRevisions. Fields of objects whose resource the subject does not write, and the status of objects whose status it does not write. " +
		"If one of these faults fired: the status, and pods with a fixed name that the subject does not create: " + strings.Join(podReplacingFaults, ", ") + ". " +
		"Nodes, leases, events, pods that have ended, and pods without a controller. Objects whose owners are gone, because the garbage collector must still delete them; but not those with a deletionTimestamp and a finalizer. Runs in which one of these faults fired: " + strings.Join(sameEndStateExcludes, ", ") + ".",
	NeedsBaseline: true,
	New:           newSameEndStateChecker,
}

// sameEndStateExcludes contains faults that may correctly lead to other objects at the end of a
// run. The check does not compare a run in which one of them fired.
var sameEndStateExcludes = slices.Concat(desiredStateFaults, []string{"pod-relabel", "pod-disown"})

// podReplacingFaults contains faults that end or replace pods. A status may correctly count such
// pods, for example as failed. Nobody replaces a pod that a user created without a controller.
var podReplacingFaults = []string{"pod-churn", "pod-pending", "node-drain", "node-taint", "node-not-ready", "node-stop", "node-cut-off", "node-delete"}

func newSameEndStateChecker(s Settings) Checker {
	checker := newBaselineChecker(s, sameEndStateExcludes, compareEndStates)
	checker.reportsUnmet = !s.hasContract() // other checks examine whether the controllers with a contract converge
	return checker
}

// compareEndStates compares the end of the run with the runs without faults. The first result is
// always 1, because the end of a run is one fact. The second describes each difference.
func compareEndStates(b *baseline.Baseline, run *baseline.Observer, fired []string) (compared int, differences []baseline.Difference) {
	for _, text := range b.Differences(run, podsReplaced(fired)) {
		differences = append(differences, baseline.Difference{Text: text})
	}
	return 1, differences
}

// podsReplaced reports whether one of the given faults has ended or replaced pods.
func podsReplaced(fired []string) bool {
	return slices.ContainsFunc(fired, func(fault string) bool { return slices.Contains(podReplacingFaults, fault) })
}
