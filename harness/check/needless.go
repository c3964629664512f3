package check

import (
	"bytes"
	"maps"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// update is what an update writes.
type update struct {
	history.Ref
	// same: the process was shown that the object lists and is labelled just so.
	same bool
	// there is the version that was there when it was sent, if it names none.
	there history.Version
}

// updateOf reads an update, of what has been written before.
func (p *process) updateOf(r *history.Request) *update {
	if r.Verb != "update" || r.Object == nil || r.Resource == podResource {
		return nil
	}
	u := &update{Ref: r.Object.Ref}
	u.Resource, u.Namespace, u.Name = r.Resource, r.Namespace, r.Name
	if r.Resource == endpointsResource {
		u.same = p.view.endpointsNamed(serviceName(u.Ref)).same(r.Object)
	}
	return u
}

// same reports whether an object is written from just these Endpoints and lists and
// is labelled as they are. Truncated ones are not compared: they are sent each time
// (trap 32).
func (e *endpoints) same(o *history.Object) bool {
	return e != nil && e.Version == o.Version && len(e.body) > 0 && bytes.Equal(e.body, o.Body) &&
		maps.Equal(e.labels, o.Labels) && e.capacity == "" && o.Annotations[capacityAnnotation] == ""
}
