package check

import (
	"maps"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// abandonedScaleDowns contains the key of each Deployment whose controller failed to scale down
// a ReplicaSet and has not tried again. It recognizes the known upstream issue swallowed-error.
type abandonedScaleDowns map[workQueueKey]bool

// observe adds a Deployment when a scale-down of one of its ReplicaSets fails. It removes the
// Deployment when a process sends another write of one of its ReplicaSets.
func (a abandonedScaleDowns) observe(m *Model, r *history.Record) {
	switch {
	case processStarts(r):
		dropEndedProcesses(a)
	case m.sent != nil && m.sent.rollout != nil && r.Request.Resource == objects.ReplicaSetResource:
		maps.DeleteFunc(a, func(key workQueueKey, _ bool) bool { return key.uid == m.sent.rollout.uid })
	case m.answered != nil && isFailure(m.answered) && scalesDown(m.answered.call):
		a[m.answered.queueKey] = true
	}
}

// scalesDown reports whether a call certainly makes a ReplicaSet smaller. If the version on which the
// call is based is unknown, the call must do so for each state that the controller may have read.
func scalesDown(c *call) bool {
	s := c.scaling
	if s != nil && !s.creates && s.from != unknownSize {
		return s.to < s.from
	}
	return s != nil && !s.creates && every(s.replicaSetStates, func(sets []*objects.Owner) bool { return s.to < s.replicasBefore(sets) })
}
