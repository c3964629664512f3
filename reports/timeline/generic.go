package timeline

import (
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// readGeneric sets the fields of s that objects of many Kinds have, such as spec.replicas and
// status.conditions. It is for Kinds without a decoder of their own, such as custom resources. It
// ignores an object whose body is not a JSON object.
func (s *state) readGeneric(d *objects.Decoder, o *history.Object) {
	g, err := d.Generic(o)
	if err != nil {
		return
	}
	s.desired, s.replicas, s.readyReplicas, s.available = g.Replicas, g.Status.Replicas, g.Status.ReadyReplicas, g.Status.AvailableReplicas
	s.phase = g.Phase
	for _, c := range g.Conditions {
		s.conditions = append(s.conditions, c.Type+"="+c.Status)
	}
}
