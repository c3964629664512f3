package check

import (
	"slices"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/history"
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

// sameEndStateChecker reports each object or field that differs from the baseline at the end.
type sameEndStateChecker struct {
	findings
	baselineRun
}

func newSameEndStateChecker(s Settings) Checker {
	return &sameEndStateChecker{baselineRun: newBaselineRun(s, sameEndStateExcludes)}
}

func (checker *sameEndStateChecker) Observe(m *Model, r *history.Record) {
	if !checker.ends(r) {
		return
	}
	checker.exercised++
	for _, difference := range checker.baseline.End.Differences(checker.observer.End(checker.baseline.Written)) {
		checker.addViolation(func() Evidence {
			return Evidence{Summary: difference, Expected: asWithoutFaults, At: m.now, Records: []int64{m.seq}}
		})
	}
}

func (checker *sameEndStateChecker) Result() Result { return checker.result(&checker.findings) }
