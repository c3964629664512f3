package check

import (
	"fmt"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// rolloutCompleteCheck demands that each Deployment completes its rollout after the faults are
// healed. It also examines each create of a ReplicaSet whose Deployment is paused. A paused
// Deployment gets no new ReplicaSet.
//
// The verdict is unknown if the run ends before the scenario's time limit while a Deployment has
// not converged. The check skips terminating Deployments.
var rolloutCompleteCheck = Check{
	ID:               "rollout-complete",
	Guarantee:        "Within the scenario's bound after the faults are healed, each Deployment has rolled out its template and annotations (as far as its new pods become available), with a matching status and at most revisionHistoryLimit old ReplicaSets. A paused Deployment gets no new ReplicaSet.",
	Contract:         "Deployment 4, 12, 13, 14, 15, 16, 17, 19",
	Property:         Liveness,
	Scope:            contractOf(kube.RollsOut),
	ExercisedWhen:    "A Deployment exists at the end of the run.",
	AllowedBehaviors: []string{"no-deadline-after-completion", "revision-may-decrease", "deleted-annotations-remain"},
	New:              newRolloutCompleteChecker,
}

// rolloutCompleteChecker reports Deployments that do not converge, and ReplicaSets that a
// controller creates for paused Deployments.
type rolloutCompleteChecker struct {
	findings            // violations by creates of ReplicaSets for paused Deployments
	*convergenceChecker // reports Deployments that do not converge
}

func newRolloutCompleteChecker(s Settings) Checker {
	return &rolloutCompleteChecker{convergenceChecker: newConvergenceChecker(s, convergingDeployments())}
}

func (checker *rolloutCompleteChecker) Observe(m *Model, r *history.Record) {
	checker.convergenceChecker.Observe(m, r)
	if m.sent == nil || m.sent.scaling == nil || !m.sent.scaling.creates {
		return
	}
	s := m.sent.scaling
	if !s.hasCachedState() || !every(s.deployments, func(d *objects.Deployment) bool { return d.Paused }) {
		return
	}
	checker.addViolation(func() Evidence {
		return s.evidence(m, fmt.Sprintf("created ReplicaSet %s while the Deployment was paused", s.name), "no new ReplicaSet for a paused Deployment")
	})
}

// Result returns the verdict fail if a controller created a ReplicaSet for a paused Deployment.
// Otherwise it returns the result of the embedded convergenceChecker, which says whether every
// Deployment completed its rollout in time.
func (checker *rolloutCompleteChecker) Result() Result {
	if checker.violations > 0 {
		return checker.findings.Result()
	}
	return checker.convergenceChecker.result
}
