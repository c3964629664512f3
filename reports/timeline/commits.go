package timeline

import (
	"fmt"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// commit adds a mark (an event on the timeline) for a committed version of an object. It also
// updates the values of the charts.
func (b *builder) commit(r *history.Record) error {
	s, err := b.remember(r)
	if err != nil {
		return err
	}
	o := &r.Commit.Object
	b.mark(Mark{
		Seq: r.Seq, From: r.At, To: r.At, Track: b.objectTrack(o), Kind: Commit, Action: string(r.Commit.Type),
		Object: b.title(o.Ref), Note: s.String(), Version: o.Version,
	})
	if r.Seq <= b.window.to { // the charts end with the window, and a cited record may be later
		b.counts.observe(r, s)
	}
	return nil
}

// state has the fields of an object's version that the timeline shows in charts and in texts about
// events.
type state struct {
	resource    string
	terminating bool
	phase       string
	// ready and active are set only for pods. A pod is active if it is neither terminating nor
	// ended.
	ready  bool
	active bool
	// desired and the following fields are set for objects other than pods, Endpoints and
	// Services. A field is nil if the object does not have it.
	desired, replicas, readyReplicas, available *int
	revision                                    string
	conditions                                  []string // the conditions in the object's status, such as "Ready=True"
	// addresses and notReady are set only for Endpoints.
	addresses, notReady int // the numbers of ready and of not ready addresses
	// selector is set only for Services.
	selector map[string]string
}

// stateOf returns the fields of an object's version that the timeline shows. It returns an error
// if the object cannot be decoded.
func (b *builder) stateOf(o *history.Object) (state, error) {
	s := state{resource: o.Resource, terminating: o.Terminating()}
	decoded, err := b.decoder.Decode(o)
	if err != nil {
		return s, err
	}
	switch decoded := decoded.(type) {
	case *objects.Pod:
		s.phase, s.ready, s.active = decoded.Phase, decoded.Ready, decoded.Active
	case *objects.Owner:
		status := &decoded.Status
		s.desired, s.replicas, s.readyReplicas, s.available = &decoded.Replicas, &status.Replicas, &status.ReadyReplicas, &status.AvailableReplicas
		s.revision = o.Annotations[objects.RevisionAnnotation]
	case *objects.Deployment:
		status := &decoded.Status
		s.desired, s.replicas, s.readyReplicas, s.available = &decoded.Replicas, &status.Replicas, &status.ReadyReplicas, &status.AvailableReplicas
		s.revision = o.Annotations[objects.RevisionAnnotation]
	case *objects.Endpoints:
		s.addresses, s.notReady, err = decoded.CountAddresses()
	case *objects.Service:
		s.selector = decoded.Spec.Selector
	default:
		s.readGeneric(b.decoder, o)
	}
	return s, err
}

// String formats the state as one line for the note of a mark. Examples are "Running, ready" and
// "spec.replicas: 3; status: 3 replicas, 2 ready".
func (s state) String() string {
	var parts []string
	add := func(part string) {
		if part != "" {
			parts = append(parts, part)
		}
	}
	add(s.phase)
	if s.ready {
		add("ready")
	}
	if s.resource == endpoints {
		add(fmt.Sprintf("ready addresses: %d, not ready: %d", s.addresses, s.notReady))
	}
	add(s.replicasText())
	add(strings.Join(s.conditions, ", "))
	if s.terminating {
		add("terminating")
	}
	return strings.Join(parts, ", ")
}

// replicasText formats the object's replica fields, such as "spec.replicas: 3; status: 3 replicas,
// 2 ready". It omits fields that the object does not have.
func (s state) replicasText() string {
	var parts, status []string
	if s.desired != nil {
		parts = append(parts, fmt.Sprintf("spec.replicas: %d", *s.desired))
	}
	for _, field := range []struct {
		value *int
		name  string
	}{{s.replicas, "replicas"}, {s.readyReplicas, "ready"}, {s.available, "available"}} {
		if field.value != nil {
			status = append(status, fmt.Sprintf("%d %s", *field.value, field.name))
		}
	}
	if len(status) > 0 {
		parts = append(parts, "status: "+strings.Join(status, ", "))
	}
	if s.revision != "" {
		parts = append(parts, "revision "+s.revision)
	}
	return strings.Join(parts, "; ")
}
