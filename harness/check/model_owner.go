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
	name     string // as controllerRefs have it
	resource string // as requests have it
	// selector reads spec.selector.
	selector func(json.RawMessage) (labels.Selector, error)
}

// controllerKind is the kind whose controller does not wait for its own writes.
const controllerKind = "ReplicationController"

// ownerKinds lists what the subject runs. A pod that is controlled by anything
// else is none of its business.
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

// owner is what the checks need of one version of an owner. It never changes.
type owner struct {
	history.Ref
	kind        *ownerKind
	generation  int64
	terminating bool
	replicas    int // spec.replicas
	selector    labels.Selector
	minReady    time.Duration
	status      ownerStatus
	failing     bool // its status says that pods could not be made or deleted
	replicaSetFields
}

// ownerStatus is what the controller says of an owner.
type ownerStatus struct {
	Replicas             int   `json:"replicas"`
	FullyLabeledReplicas int   `json:"fullyLabeledReplicas"`
	ReadyReplicas        int   `json:"readyReplicas"`
	AvailableReplicas    int   `json:"availableReplicas"`
	ObservedGeneration   int64 `json:"observedGeneration"`
	TerminatingReplicas  *int  `json:"terminatingReplicas"` // nil: it does not say
}

// replicaSetFields is what a Deployment's controller goes by in a ReplicaSet.
type replicaSetFields struct {
	controller      history.Owner // without UID: nobody's
	labels          labels.Set
	template        *template
	revision        int64 // as annotated; 0: not at all
	desiredReplicas int   // replicas of the Deployment when it was last scaled, as annotated; -1: not at all
	maxReplicas     int   // replicas that its ReplicaSets might have together then, as annotated; 0: not at all
	created         time.Time
	// annotations are those that a Deployment may have given it.
	annotations map[string]string
}

// olderThan reports whether a ReplicaSet is older than another, by name where that
// is equal.
func (o *owner) olderThan(other *owner) bool {
	return cmp.Or(o.created.Compare(other.created), strings.Compare(o.Name, other.Name)) < 0
}

// String is how evidence names the owner: kind namespace/name.
func (o *owner) String() string { return o.kind.name + " " + o.Namespace + "/" + o.Name }

// statusBody is an owner's status as it is written.
type statusBody struct {
	ownerStatus
	Conditions []deploymentCondition
}

// failing reports whether the status says that pods could not be made or deleted.
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

// replicasOrDefault is spec.replicas with the API's default.
func replicasOrDefault(replicas *int) int {
	if replicas == nil {
		return 1
	}
	return *replicas
}

// countsPod reports whether a pod counts for the owner.
func (o *owner) countsPod(p *pod) bool {
	return p.active && p.controller.UID == o.UID && o.selector.Matches(p.labels)
}

// toAdoptOrRelease reports whether a pod is to be adopted or released by the owner.
func (o *owner) toAdoptOrRelease(p *pod) bool {
	return p.active && (p.orphan() && p.Namespace == o.Namespace || p.controller.UID == o.UID) &&
		p.orphan() == o.selector.Matches(p.labels)
}
