package check

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// rolloutCompleteJudge: Deployments converge, and one that is paused gets no new
// ReplicaSet meanwhile.
type rolloutCompleteJudge struct {
	findings // ReplicaSets made for paused Deployments
	*settlement
}

func newRolloutComplete(s Settings) Checker {
	abandoned := abandonment{}
	givenUp := newDropped(func(c *call) bool { return c.rollout != nil })
	return &rolloutCompleteJudge{settlement: newSettlement(s, realm{
		nothing: "there was no Deployment",
		touched: func(w *world) bool {
			for uid := range w.touched {
				if w.deployments[uid] != nil {
					return true
				}
			}
			return false
		},
		all: func(m *Model, namespace string) []types.UID { return inOrder(m.truth.deployments, namespace) },
		pending: func(m *Model, uid types.UID) (*history.Ref, []pending) {
			d := m.truth.deployments[uid]
			return &d.Ref, m.truth.pendingDeployment(d, m.start.Time.Add(m.now))
		},
		watch: func(m *Model, r *history.Record) {
			abandoned.observe(m, r)
			givenUp.observe(m, r)
		},
		weakness: func(m *Model, uid types.UID) *KnownIssue {
			key := item{uid: uid}
			return m.truth.rolloutWeakness(m.truth.deployments[uid], hasKey(m, abandoned, key), givenUp.explains(m, key))
		},
	})}
}

func (j *rolloutCompleteJudge) Observe(m *Model, r *history.Record) {
	j.settlement.Observe(m, r)
	if m.sent == nil || m.sent.scaling == nil || !m.sent.scaling.creates {
		return
	}
	s := m.sent.scaling
	if !s.judgeable() || !all(s.deployments, func(d *deployment) bool { return d.paused }) {
		return
	}
	j.violate(func() Evidence {
		return s.evidence(m, fmt.Sprintf("created ReplicaSet %s, though the Deployment was paused", s.name), "no new ReplicaSet of a paused Deployment")
	})
}

// Result is the worse of what was seen on the way and in the end.
func (j *rolloutCompleteJudge) Result() Result {
	if j.violations > 0 {
		return j.findings.Result()
	}
	return j.settlement.result
}
