package timeline

import (
	"encoding/json"
	"fmt"

	"github.com/kube-gauntlet/gauntlet/harness/history"
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
func stateOf(o *history.Object) (state, error) {
	s := state{resource: o.Resource, terminating: o.Terminating()}
	var body struct {
		Spec struct {
			Replicas *int
			Selector json.RawMessage
		}
		Status struct {
			Phase      string
			Conditions []struct{ Type, Status string }
			Replicas, ReadyReplicas,
			AvailableReplicas int
		}
		Subsets []struct{ Addresses, NotReadyAddresses []struct{} }
	}
	if len(o.Body) > 0 {
		if err := history.Unmarshal(o.Body, &body); err != nil {
			return s, err
		}
	}
	switch o.Resource {
	case pods:
		s.phase = body.Status.Phase
		s.active = !s.terminating && s.phase != "Failed" && s.phase != "Succeeded"
		for _, c := range body.Status.Conditions {
			s.ready = s.ready || c.Type == "Ready" && c.Status == "True"
		}
	case replicaSets, controllers, deployments:
		s.desired = 1 // the API server's default
		if body.Spec.Replicas != nil {
			s.desired = *body.Spec.Replicas
		}
		s.replicas, s.readyReplicas, s.available = body.Status.Replicas, body.Status.ReadyReplicas, body.Status.AvailableReplicas
		s.revision = o.Annotations["deployment.kubernetes.io/revision"]
	case endpoints:
		for _, subset := range body.Subsets {
			s.addresses += len(subset.Addresses)
			s.notReady += len(subset.NotReadyAddresses)
		}
	case services:
		if len(body.Spec.Selector) > 0 {
			return s, history.Unmarshal(body.Spec.Selector, &s.selector)
		}
	}
	return s, nil
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
