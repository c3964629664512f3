package check

import (
	"slices"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/baseline"
)

// sameEndStateCheck compares the objects at the end of the observation with those of runs without
// faults. Faults may delay what a controller makes of a workload, but must not change it.
//
// The comment of [baseline.Observer.End] says which objects and fields count.
var sameEndStateCheck = Check{
	ID:            "same-end-state",
	Guarantee:     "After the faults are healed, the objects in the cluster become those of runs of the same workload without faults.",
	Contract:      "Kubernetes documentation, Controllers, Desired versus current state",
	Property:      Liveness,
	Scope:         general,
	ExercisedWhen: "A run with a baseline ends.",
	Ignores: "Runs without a baseline. Values on which the runs without faults do not agree. Status, annotations, and the fields of pods and endpoints. Fields of objects whose resource the subject does not write. " +
		"Nodes, leases, events, pods that have ended, and pods without a controller. Runs in which one of these faults fired: " + strings.Join(sameEndStateExcludes, ", ") + ".",
	New: newSameEndStateChecker,
}

// sameEndStateExcludes are faults after which other objects at the end are correct.
var sameEndStateExcludes = slices.Concat(changeWishes, []string{"pod-relabel", "pod-disown"})

func newSameEndStateChecker(s Settings) Checker {
	return newBaselineChecker(s, sameEndStateExcludes, compareEndStates)
}

// compareEndStates returns each object or field that differs from the baseline at the end.
func compareEndStates(b *baseline.Baseline, run *baseline.Observer) (compared int, differences []string) {
	return 1, b.End.Differences(run.End(b.Written))
}
