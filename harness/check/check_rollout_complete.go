package check

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// rolloutCompleteCheck is the row of rollout-complete in All.
var rolloutCompleteCheck = Check{
	ID:               "rollout-complete",
	Guarantee:        "Once faults are healed, every Deployment has rolled out its template, to a ReplicaSet with its annotations, with a status that says so, and within its history limit; one that is paused gets no new ReplicaSet.",
	Contract:         "Deployment 4, 12, 13, 14, 15, 16, 17, 19",
	Property:         Liveness,
	AllowedBehaviors: []string{"no-deadline-after-completion", "revision-may-decrease", "deleted-annotations-remain"},
	New:              newRolloutCompleteChecker,
}

// rolloutCompleteChecker: Deployments converge, and one that is paused gets no new
// ReplicaSet meanwhile.
type rolloutCompleteChecker struct {
	findings // ReplicaSets made for paused Deployments
	*convergenceChecker
}

func newRolloutCompleteChecker(s Settings) Checker {
	abandoned := abandonedScaleDowns{}
	givenUp := newDroppedKeys(func(c *call) bool { return c.rollout != nil })
	return &rolloutCompleteChecker{convergenceChecker: newConvergenceChecker(s, convergingKind{
		noneReason: "there was no Deployment",
		changed: func(objects *objectSet) bool {
			for uid := range objects.changedObjects {
				if objects.deployments[uid] != nil {
					return true
				}
			}
			return false
		},
		all: func(m *Model, namespace string) []types.UID { return sortedByName(m.committed.deployments, namespace) },
		pending: func(m *Model, uid types.UID) (*history.Ref, []pending) {
			d := m.committed.deployments[uid]
			return &d.Ref, m.committed.pendingDeployment(d, m.start.Time.Add(m.now))
		},
		observe: func(m *Model, r *history.Record) {
			abandoned.observe(m, r)
			givenUp.observe(m, r)
		},
		knownIssue: func(m *Model, uid types.UID) *KnownIssue {
			key := workQueueKey{uid: uid}
			return m.committed.knownRolloutIssue(m.committed.deployments[uid], hasKey(m, abandoned, key), givenUp.explains(m, key))
		},
	})}
}

func (checker *rolloutCompleteChecker) Observe(m *Model, r *history.Record) {
	checker.convergenceChecker.Observe(m, r)
	if m.sent == nil || m.sent.scaling == nil || !m.sent.scaling.creates {
		return
	}
	s := m.sent.scaling
	if !s.hasCachedState() || !every(s.deployments, func(d *deployment) bool { return d.paused }) {
		return
	}
	checker.addViolation(func() Evidence {
		return s.evidence(m, fmt.Sprintf("created ReplicaSet %s, though the Deployment was paused", s.name), "no new ReplicaSet of a paused Deployment")
	})
}

// Result is the worse of what was seen on the way and in the end.
func (checker *rolloutCompleteChecker) Result() Result {
	if checker.violations > 0 {
		return checker.findings.Result()
	}
	return checker.convergenceChecker.result
}
