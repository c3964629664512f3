package check

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// podResource is the resource of pods.
const podResource = "pods"

// pod contains the fields of one version of a pod that checkers read. It is immutable.
type pod struct {
	history.Ref
	labels      labels.Set
	controller  history.Owner // UID is empty if the pod is an orphan
	terminating bool
	ended       bool // Failed or Succeeded
	active      bool // neither terminating nor ended
	ready       bool
	readySince  time.Time
	deletionOrder
}

// deletionOrder contains the other fields that decide which pods a scale-down deletes
// first (contract ReplicaSet 10).
type deletionOrder struct {
	assigned bool // to a node
	phase    int  // index in phases
	cost     int  // the pod-deletion-cost
	restarts int  // of the container with the most restarts
	created  time.Time
}

// phases contains the phases of pods that have not ended, in the order of scale-down.
var phases = []string{"Pending", "Unknown", "Running"}

// costAnnotation is the annotation with the pod-deletion-cost.
const costAnnotation = "controller.kubernetes.io/pod-deletion-cost"

// hasManagedOwner reports whether the subject runs the controller of the pod's owner.
func (p *pod) hasManagedOwner() bool {
	return p.controller.UID != "" && kindByName(p.controller.Kind) != nil
}

func (p *pod) orphan() bool { return p.controller.UID == "" }

// sameForAdoption reports whether two versions of a pod do not differ in any field that
// decides about adoption or release.
func (p *pod) sameForAdoption(other *pod) bool {
	return p.controller == other.controller && p.active == other.active && maps.Equal(p.labels, other.labels)
}

// sameForScaleDown reports whether two versions of a pod do not differ in any field that
// decides the order of scale-down.
func (p *pod) sameForScaleDown(other *pod) bool {
	return p.sameForAdoption(other) && p.deletionOrder == other.deletionOrder && p.ready == other.ready && p.readySince.Equal(other.readySince)
}

func decodePod(o *history.Object) (*pod, error) {
	var body struct {
		Spec   struct{ NodeName string }
		Status struct {
			Phase      string
			Conditions []struct {
				Type, Status       string
				LastTransitionTime time.Time
			}
			ContainerStatuses []struct{ RestartCount int }
		}
	}
	if err := unmarshalSome(o.Body, &body); err != nil {
		return nil, err
	}
	p := &pod{
		Ref:         o.Ref,
		labels:      maps.Clone(o.Labels),
		terminating: o.Terminating(),
	}
	if ref := o.ControllerRef(); ref != nil {
		p.controller = *ref
	}
	phase := body.Status.Phase
	p.ended = phase == "Failed" || phase == "Succeeded"
	p.active = !p.terminating && !p.ended
	for _, condition := range body.Status.Conditions {
		if condition.Type == "Ready" && condition.Status == "True" {
			p.ready, p.readySince = true, condition.LastTransitionTime
		}
	}
	p.deletionOrder = deletionOrder{
		assigned: body.Spec.NodeName != "",
		phase:    max(0, slices.Index(phases, phase)),
		cost:     int(wholeNumber(o.Annotations[costAnnotation], 0)),
		created:  o.Created,
	}
	for _, container := range body.Status.ContainerStatuses {
		p.restarts = max(p.restarts, container.RestartCount)
	}
	return p, nil
}
