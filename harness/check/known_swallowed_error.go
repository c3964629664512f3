package check

import (
	"maps"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// abandonment is the Deployments of which the last that was written of any of their
// ReplicaSets failed to scale one down.
type abandonment map[item]bool

func (a abandonment) observe(m *Model, r *history.Record) {
	switch {
	case begins(r):
		forgetEnded(a)
	case m.sent != nil && m.sent.rollout != nil && r.Request.Resource == setResource:
		maps.DeleteFunc(a, func(i item, _ bool) bool { return i.uid == m.sent.rollout.uid })
	case m.answered != nil && m.answered.scaling != nil && isFailure(m.answered):
		s := m.answered.scaling
		if down := all(s.states, func(sets []*owner) bool { return s.to < s.before(sets) }); down && !s.creates {
			a[m.answered.item] = true
		}
	}
}
