package check

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// ownerKind is a kind of object whose pods the subject manages.
type ownerKind struct {
	name     string // the kind in a controllerRef
	resource string // the resource in a request
	// selector parses spec.selector.
	selector func(json.RawMessage) (labels.Selector, error)
}

// controllerKind is the kind of ReplicationControllers. Unlike the others, their controller
// does not wait until its cache contains its own writes.
const controllerKind = "ReplicationController"

// ownerKinds contains the kinds whose controllers the subject runs. The checks ignore
// pods of any other controller.
var ownerKinds = []ownerKind{
	{name: "ReplicaSet", resource: "replicasets.apps", selector: labelSelector},
	{name: controllerKind, resource: "replicationcontrollers", selector: equalitySelector},
}

func kindByName(name string) *ownerKind {
	for i := range ownerKinds {
		if ownerKinds[i].name == name {
			return &ownerKinds[i]
		}
	}
	return nil
}

func kindByResource(resource string) *ownerKind {
	for i := range ownerKinds {
		if ownerKinds[i].resource == resource {
			return &ownerKinds[i]
		}
	}
	return nil
}

func labelSelector(raw json.RawMessage) (labels.Selector, error) {
	var selector *metav1.LabelSelector
	if err := unmarshalSome(raw, &selector); err != nil {
		return nil, err
	}
	return metav1.LabelSelectorAsSelector(selector)
}

func equalitySelector(raw json.RawMessage) (labels.Selector, error) {
	var set labels.Set
	if err := unmarshalSome(raw, &set); err != nil {
		return nil, err
	}
	if len(set) == 0 {
		return labels.Nothing(), nil
	}
	return set.AsSelectorPreValidated(), nil
}

// owner contains the fields of one version of an owner that checkers read. It is
// immutable.
type owner struct {
	history.Ref
	kind        *ownerKind
	generation  int64
	terminating bool
	replicas    int // spec.replicas
	selector    labels.Selector
	minReady    time.Duration
	status      ownerStatus
	failing     bool // has the condition ReplicaFailure=True
	replicaSetFields
}

// ownerStatus contains the counts in the status of an owner.
type ownerStatus struct {
	Replicas             int   `json:"replicas"`
	FullyLabeledReplicas int   `json:"fullyLabeledReplicas"`
	ReadyReplicas        int   `json:"readyReplicas"`
	AvailableReplicas    int   `json:"availableReplicas"`
	ObservedGeneration   int64 `json:"observedGeneration"`
	TerminatingReplicas  *int  `json:"terminatingReplicas"` // nil: absent
}

// replicaSetFields contains the fields of a ReplicaSet that the Deployment controller
// reads.
type replicaSetFields struct {
	controller history.Owner // UID is empty if there is no controllerRef
	labels     labels.Set
	template   *template
	revision   int64 // annotation deployment.kubernetes.io/revision; 0 if absent
	// desiredReplicas is the Deployment's spec.replicas when the controller last scaled
	// the ReplicaSet (annotation desired-replicas); -1 if absent.
	desiredReplicas int
	// maxReplicas is spec.replicas + maxSurge at that time (annotation max-replicas); 0
	// if absent.
	maxReplicas int
	created     time.Time
	// annotations contains the annotations that the ReplicaSet may have copied from its
	// Deployment.
	annotations map[string]string
}

// olderThan reports whether the ReplicaSet was created before another. The name decides
// if the creation timestamps are equal.
func (o *owner) olderThan(other *owner) bool {
	return cmp.Or(o.created.Compare(other.created), strings.Compare(o.Name, other.Name)) < 0
}

// String returns the owner as evidence names it: kind namespace/name.
func (o *owner) String() string { return o.kind.name + " " + o.Namespace + "/" + o.Name }

// statusBody is the status of an owner as the API has it.
type statusBody struct {
	ownerStatus
	Conditions []deploymentCondition
}

// failing reports whether the status has the condition ReplicaFailure=True.
func (s *statusBody) failing() bool {
	return slices.ContainsFunc(s.Conditions, deploymentCondition.failure)
}

func (d *decoder) decodeOwner(kind *ownerKind, o *history.Object) (*owner, error) {
	var body struct {
		Spec struct {
			Replicas        *int
			MinReadySeconds int
			Selector        json.RawMessage
			Template        json.RawMessage
		}
		Status statusBody
	}
	if err := unmarshalSome(o.Body, &body); err != nil {
		return nil, err
	}
	selector, err := d.selectors[kind].read(body.Spec.Selector, kind.selector)
	if err != nil {
		return nil, fmt.Errorf("spec.selector: %w", err)
	}
	pods, err := d.templates.read(body.Spec.Template, decodeTemplate)
	if err != nil {
		return nil, fmt.Errorf("spec.template: %w", err)
	}
	set := replicaSetFields{
		labels:          maps.Clone(o.Labels),
		template:        pods,
		revision:        wholeNumber(o.Annotations[revisionAnnotation], 0),
		desiredReplicas: int(wholeNumber(o.Annotations[desiredReplicasAnnotation], -1)),
		maxReplicas:     int(wholeNumber(o.Annotations[maxReplicasAnnotation], 0)),
		created:         o.Created,

		annotations: inheritedAnnotations(o.Annotations),
	}
	if ref := o.ControllerRef(); ref != nil {
		set.controller = *ref
	}
	return &owner{
		Ref:              o.Ref,
		kind:             kind,
		generation:       o.Generation,
		terminating:      o.Terminating(),
		replicas:         replicasOrDefault(body.Spec.Replicas),
		selector:         selector,
		minReady:         time.Duration(body.Spec.MinReadySeconds) * time.Second,
		status:           body.Status.ownerStatus,
		failing:          body.Status.failing(),
		replicaSetFields: set,
	}, nil
}

// replicasOrDefault returns spec.replicas, or the API's default.
func replicasOrDefault(replicas *int) int {
	if replicas == nil {
		return 1
	}
	return *replicas
}

// countsPod reports whether the pod counts as a replica of the owner.
func (o *owner) countsPod(p *pod) bool {
	return p.active && p.controller.UID == o.UID && o.selector.Matches(p.labels)
}

// toAdoptOrRelease reports whether the owner must adopt or release the pod.
func (o *owner) toAdoptOrRelease(p *pod) bool {
	return p.active && (p.orphan() && p.Namespace == o.Namespace || p.controller.UID == o.UID) &&
		p.orphan() == o.selector.Matches(p.labels)
}
