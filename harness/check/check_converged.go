package check

import "github.com/kube-gauntlet/gauntlet/harness/kube"

// convergedCheck demands that each ReplicaSet and ReplicationController gets the right pods and
// status after the faults are healed.
//
// The verdict is unknown if an object has not converged, but the run ends before the scenario's
// time limit. The check skips terminating objects.
var convergedCheck = Check{
	ID:               "converged",
	Guarantee:        "Within the scenario's bound after the faults are healed, each ReplicaSet and ReplicationController has exactly spec.replicas active pods, and a status that matches them.",
	Contract:         "ReplicaSet 4, 5, 14",
	Property:         Liveness,
	Scope:            contractOf(kube.OwnsPods),
	ExercisedWhen:    "A ReplicaSet or ReplicationController exists at the end of the run.",
	AllowedBehaviors: []string{"terminating-pods-not-counted", "whole-second-timestamps", "retry-delay"},
	New:              newConvergedChecker,
}

// newConvergedChecker returns a checker that reports ReplicaSets and ReplicationControllers that
// do not converge in time.
func newConvergedChecker(s Settings) Checker {
	return newConvergenceChecker(s, convergingOwners())
}
