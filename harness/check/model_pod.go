package check

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// podResource is the resource that the owners' children are of.
const podResource = "pods"

// pod is what the checks need of one version of a pod. It never changes.
type pod struct {
	history.Ref
	labels      labels.Set
	controller  history.Owner // without UID: the pod is an orphan
	terminating bool
	ended       bool // Failed or Succeeded
	active      bool // neither terminating nor ended
	ready       bool
	readySince  time.Time
	deletionOrder
}

// deletionOrder is what else decides which of an owner's pods goes first when there
// are too many (contract ReplicaSet 10).
type deletionOrder struct {
	assigned bool // to a node
	phase    int  // its place in the order in which phases go: 0 goes first
	cost     int  // of its deletion
	restarts int  // of the container that has restarted most
	created  time.Time
}

// phases is the phases of pods that have not ended, in the order in which pods go.
var phases = []string{"Pending", "Unknown", "Running"}

// costAnnotation says what it costs to delete a pod.
const costAnnotation = "controller.kubernetes.io/pod-deletion-cost"

// hasManagedOwner reports whether the subject runs the controller of the pod's owner.
func (p *pod) hasManagedOwner() bool {
	return p.controller.UID != "" && kindByName(p.controller.Kind) != nil
}

func (p *pod) orphan() bool { return p.controller.UID == "" }

// sameForAdoption reports whether two versions of a pod are alike in what decides who
// may claim it.
func (p *pod) sameForAdoption(other *pod) bool {
	return p.controller == other.controller && p.active == other.active && maps.Equal(p.labels, other.labels)
}

// sameForScaleDown reports whether two versions of a pod are alike in all that decides
// which goes first.
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
