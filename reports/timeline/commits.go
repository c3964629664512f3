package timeline

import (
	"fmt"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// commit adds the mark of a committed version and updates the counts.
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
	if r.Seq <= b.window.to { // a cited record may be after the window
		b.counts.observe(r, s)
	}
	return nil
}

// state is the part of an object that the timeline shows.
type state struct {
	resource    string
	terminating bool
	// The fields of a pod:
	phase  string
	ready  bool
	active bool
	// The fields of an owner of pods:
	desired, replicas, readyReplicas, available int
	revision                                    string
	// The fields of Endpoints:
	addresses, notReady int
	// The pod selector of a Service:
	selector map[string]string
}

// stateOf decodes a version of an object.
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
		s.desired, s.replicas, s.readyReplicas, s.available = decoded.Replicas, status.Replicas, status.ReadyReplicas, status.AvailableReplicas
		s.revision = o.Annotations[objects.RevisionAnnotation]
	case *objects.Deployment:
		status := &decoded.Status
		s.desired, s.replicas, s.readyReplicas, s.available = decoded.Replicas, status.Replicas, status.ReadyReplicas, status.AvailableReplicas
		s.revision = o.Annotations[objects.RevisionAnnotation]
	case *objects.Endpoints:
		s.addresses, s.notReady, err = decoded.CountAddresses()
	case *objects.Service:
		s.selector = decoded.Spec.Selector
	}
	return s, err
}

// String returns the state as text.
func (s state) String() string {
	text := ""
	switch s.resource {
	case pods:
		text = s.phase
		if s.ready {
			text += ", ready"
		}
	case replicaSets, controllers, deployments:
		text = fmt.Sprintf("spec.replicas: %d; status: %d replicas, %d ready, %d available", s.desired, s.replicas, s.readyReplicas, s.available)
		if s.revision != "" {
			text += "; revision " + s.revision
		}
	case endpoints:
		text = fmt.Sprintf("%d addresses, %d not ready", s.addresses, s.notReady)
	}
	if s.terminating {
		if text != "" {
			text += ", "
		}
		text += "terminating"
	}
	return text
}
