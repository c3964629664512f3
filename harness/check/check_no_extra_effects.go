package check

import (
	"maps"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/baseline"
)

// noExtraEffectsCheck demands that controllers create and delete each object at most as often as in
// runs without faults.
//
// A controller may repeat a completed write after a fault, or replace an object for no reason. This
// violates the guarantee even if the objects at the end of the run are right.
//
// The check counts only writes that the API server committed. A lost response is therefore no
// excuse for an extra write. If the controller repeats the lost write, the API server answers that
// the object exists, or no longer exists. This does not hold for generated names: there, a lost
// response to a create excuses one more create and one more delete.
var noExtraEffectsCheck = Check{
	ID:            "no-extra-effects",
	Guarantee:     "A controller creates and deletes each object at most as often as in runs of the same workload without faults.",
	Contract:      "Kubernetes documentation, Controllers, Desired versus current state",
	Property:      Safety,
	Scope:         general,
	ExercisedWhen: "The subject creates or deletes an object in a run that has a baseline, that is, saved results of runs without faults.",
	Ignores: "Runs without a baseline. Objects with a generated name, if a controller under test has a contract: the checks of the contract count its pods. Objects whose number of creates or deletes differs between the runs without faults. Creates that replace an object which somebody else deleted, or a pod that has ended. Objects with a generated name that the subject replaced after another write of the object failed. Objects that the subject created and deleted again, or created after an expected delete and then replaced, if one of these faults fired: " + strings.Join(baseline.StaleViewFaults, ", ") + ". " +
		"Deletes of a whole collection. Runs in which one of these faults fired: " + strings.Join(desiredStateFaults, ", ") + ".",
	NeedsBaseline: true,
	New:           newNoExtraEffectsChecker,
}

func newNoExtraEffectsChecker(s Settings) Checker {
	compare := compareEffects
	if s.hasContract() {
		compare = compareNamedEffects
	}
	return newBaselineChecker(s, desiredStateFaults, compare)
}

// compareEffects finds the objects that the controllers under test created or deleted more often
// than in the baseline. The first result is the number of objects that it compared. The second
// describes each object that was created or deleted too often.
func compareEffects(b *baseline.Baseline, run *baseline.Observer, _ []string) (compared int, differences []baseline.Difference) {
	found := b.EffectsOf(run)
	return len(found), b.ExtraEffects(run, found)
}

// compareNamedEffects is like compareEffects, without objects that have generated names.
func compareNamedEffects(b *baseline.Baseline, run *baseline.Observer, _ []string) (compared int, differences []baseline.Difference) {
	found := b.EffectsOf(run)
	maps.DeleteFunc(found, func(key, _ string) bool { return baseline.HasGeneratedName(key) })
	return len(found), b.ExtraEffects(run, found)
}
