package objects

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Pod contains the decoded fields of one version of a pod. It is immutable.
type Pod struct {
	history.Ref
	Labels          labels.Set
	Controller      history.Owner // the controllerRef; its UID is empty if the pod has none
	Terminating     bool
	Phase           string    // status.phase
	Ended           bool      // the phase is Failed or Succeeded
	Active          bool      // the pod is neither terminating nor ended
	Ready           bool      // the status has the condition Ready=True
	ReadySince      time.Time // lastTransitionTime of the condition Ready=True; zero if the pod is not ready
	ReadyTransition time.Time // lastTransitionTime of the condition Ready, whatever its status
	DeletionOrder
}

// DeletionOrder contains fields of a pod that decide which pods a scale-down deletes first. The
// fields Pod.Ready and Pod.ReadySince also decide this. The statement ReplicaSet 10 in
// controllers/CONTRACT.md specifies the order.
type DeletionOrder struct {
	Node         string // the node to which the pod is assigned; empty if it is assigned to none
	PhaseIndex   int    // index of the pod's phase in Phases; 0 if Phases does not contain the phase
	DeletionCost int    // value of PodDeletionCostAnnotation; 0 if the annotation is absent
	Restarts     int    // highest restart count among the pod's containers
	Created      time.Time
}

// Assigned reports whether the pod is assigned to a node.
func (o DeletionOrder) Assigned() bool { return o.Node != "" }

// Phases lists the phases of a pod that has not ended, in the order in which a scale-down deletes
// pods. A scale-down deletes Pending pods first, and Running pods last.
var Phases = []string{PodPending, PodUnknown, PodRunning}

// HasManagedOwner reports whether the controllerRef of the pod names a ReplicaSet or a
// ReplicationController. The type [Owner] contains the fields of objects of these two kinds.
func (p *Pod) HasManagedOwner() bool {
	return p.Controller.UID != "" && OwnerKindByName(p.Controller.Kind) != nil
}

// DescribeState returns the pod's state as text for a violation's evidence, such as "terminating",
// "Pending" or "Running and ready".
func (p *Pod) DescribeState() string {
	switch {
	case p.Terminating:
		return "terminating"
	case p.Ended || p.Phase != PodRunning:
		return p.Phase
	case p.Ready:
		return "Running and ready"
	}
	return "Running but not ready"
}

// Orphan reports whether the pod is an orphan: it has no controllerRef.
func (p *Pod) Orphan() bool { return p.Controller.UID == "" }

func decodePod(o *history.Object) (*Pod, error) {
	var body struct {
		Spec struct {
			NodeName string `json:"nodeName"`
		} `json:"spec"`
		Status struct {
			Phase      string `json:"phase"`
			Conditions []struct {
				Type               string    `json:"type"`
				Status             string    `json:"status"`
				LastTransitionTime time.Time `json:"lastTransitionTime"`
			} `json:"conditions"`
			ContainerStatuses []struct {
				RestartCount int `json:"restartCount"`
			} `json:"containerStatuses"`
		} `json:"status"`
	}
	if err := Unmarshal(o.Body, &body); err != nil {
		return nil, err
	}
	p := &Pod{
		Ref:         o.Ref,
		Labels:      maps.Clone(o.Labels),
		Terminating: o.Terminating(),
		Phase:       body.Status.Phase,
	}
	if ref := o.ControllerRef(); ref != nil {
		p.Controller = *ref
	}
	p.Ended = p.Phase == PodFailed || p.Phase == PodSucceeded
	p.Active = !p.Terminating && !p.Ended
	for _, condition := range body.Status.Conditions {
		if condition.Type != ReadyCondition {
			continue
		}
		p.ReadyTransition = condition.LastTransitionTime
		if condition.Status == "True" {
			p.Ready, p.ReadySince = true, condition.LastTransitionTime
		}
	}
	p.DeletionOrder = DeletionOrder{
		Node:         body.Spec.NodeName,
		PhaseIndex:   max(0, slices.Index(Phases, p.Phase)),
		DeletionCost: int(WholeNumber(o.Annotations[PodDeletionCostAnnotation], 0)),
		Created:      o.Created,
	}
	for _, container := range body.Status.ContainerStatuses {
		p.Restarts = max(p.Restarts, container.RestartCount)
	}
	return p, nil
}
