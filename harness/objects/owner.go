package objects

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
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// OwnerKind describes one of the two kinds of owners: ReplicaSet or ReplicationController.
type OwnerKind struct {
	Name     string // the kind in a controllerRef, such as "ReplicaSet"
	Resource string // the resource in a request, such as "replicasets.apps"
	// ParseSelector parses the JSON of spec.selector.
	ParseSelector func(json.RawMessage) (labels.Selector, error)
}

// OwnerKinds contains the descriptions of ReplicaSet and ReplicationController.
var OwnerKinds = ownerKinds()

// ownerKinds returns the descriptions of ReplicaSet and ReplicationController. It finds both in the
// table of package kube, by the field Decoding, which selects the decoder of a kind.
func ownerKinds() (kinds []OwnerKind) {
	parsers := map[kube.Decoding]func(json.RawMessage) (labels.Selector, error){
		kube.AsReplicaSet:            ParseLabelSelector,
		kube.AsReplicationController: equalitySelector,
	}
	for _, k := range kube.Kinds {
		if parse := parsers[k.Decoding]; parse != nil {
			kinds = append(kinds, OwnerKind{Name: k.Name, Resource: k.Resource(), ParseSelector: parse})
		}
	}
	return kinds
}

// OwnerKindByName returns the OwnerKind with the given name, such as "ReplicaSet". It returns
// nil if the name is neither ReplicaSet nor ReplicationController.
func OwnerKindByName(name string) *OwnerKind {
	for i := range OwnerKinds {
		if OwnerKinds[i].Name == name {
			return &OwnerKinds[i]
		}
	}
	return nil
}

// OwnerKindByResource returns the OwnerKind with the given resource, such as
// "replicasets.apps". It returns nil for any other resource.
func OwnerKindByResource(resource string) *OwnerKind {
	for i := range OwnerKinds {
		if OwnerKinds[i].Resource == resource {
			return &OwnerKinds[i]
		}
	}
	return nil
}

// ParseLabelSelector returns the label selector in the JSON of a metav1.LabelSelector, such as
// spec.selector of a ReplicaSet or Deployment.
func ParseLabelSelector(raw json.RawMessage) (labels.Selector, error) {
	var selector *metav1.LabelSelector
	if err := Unmarshal(raw, &selector); err != nil {
		return nil, err
	}
	return metav1.LabelSelectorAsSelector(selector)
}

// equalitySelector returns the label selector in spec.selector of a ReplicationController. The
// argument raw is the JSON of this field, a map of labels. An empty map matches nothing.
func equalitySelector(raw json.RawMessage) (labels.Selector, error) {
	var set labels.Set
	if err := Unmarshal(raw, &set); err != nil {
		return nil, err
	}
	if len(set) == 0 {
		return labels.Nothing(), nil
	}
	return set.AsSelectorPreValidated(), nil
}

// Owner contains the decoded fields of one version of a ReplicaSet or
// ReplicationController. It is immutable.
type Owner struct {
	history.Ref
	Kind        *OwnerKind
	Generation  int64
	Terminating bool
	Replicas    int // spec.replicas
	Selector    labels.Selector
	MinReady    time.Duration // spec.minReadySeconds
	Status      OwnerStatus
	Conditions  []ConditionWithTime
	Failing     bool // the status has the condition ReplicaFailure=True
	ReplicaSetFields
}

// OwnerStatus contains the numbers in the status of a ReplicaSet or ReplicationController.
type OwnerStatus struct {
	Replicas             int   `json:"replicas"`
	FullyLabeledReplicas int   `json:"fullyLabeledReplicas"`
	ReadyReplicas        int   `json:"readyReplicas"`
	AvailableReplicas    int   `json:"availableReplicas"`
	ObservedGeneration   int64 `json:"observedGeneration"`
	TerminatingReplicas  *int  `json:"terminatingReplicas"` // nil if the field is absent
}

// ReplicaSetFields contains the fields of a ReplicaSet that the Deployment controller reads, such
// as the pod template and the revision. In an Owner that is a ReplicationController, they have no
// meaning.
type ReplicaSetFields struct {
	Controller history.Owner // the controllerRef; its UID is empty if the object has none
	Labels     labels.Set
	Template   *Template
	Revision   int64 // value of RevisionAnnotation; 0 if the annotation is absent
	// RevisionHistory is the value of RevisionHistoryAnnotation, or "" if the annotation is absent.
	RevisionHistory string
	// DesiredReplicas is the value of DesiredReplicasAnnotation, or -1 if the annotation is
	// absent.
	DesiredReplicas int
	// MaxReplicas is the value of MaxReplicasAnnotation, or 0 if the annotation is absent.
	MaxReplicas int
	Created     time.Time
	// Annotations contains the annotations that the Deployment controller may have copied from
	// the Deployment to the ReplicaSet.
	Annotations map[string]string
}

// OlderThan reports whether the ReplicaSet o was created before the ReplicaSet other. If the
// creation timestamps are equal, the ReplicaSet whose name sorts first counts as older.
func (o *Owner) OlderThan(other *Owner) bool {
	return cmp.Or(o.Created.Compare(other.Created), strings.Compare(o.Name, other.Name)) < 0
}

// String returns "kind namespace/name".
func (o *Owner) String() string { return o.Kind.Name + " " + o.Namespace + "/" + o.Name }

// OwnerStatusBody is the status of a ReplicaSet or ReplicationController, in the JSON form of
// the API. Unlike OwnerStatus, it also has the conditions.
type OwnerStatusBody struct {
	OwnerStatus
	Conditions []ConditionWithTime `json:"conditions"`
}

// Failing reports whether the status has the condition ReplicaFailure=True.
func (s *OwnerStatusBody) Failing() bool {
	return slices.ContainsFunc(s.Conditions, ConditionWithTime.IsReplicaFailure)
}

// FailureReason returns the reason of the condition ReplicaFailure=True, such as FailedCreate. It
// returns "" if the status does not have this condition.
func (s *OwnerStatusBody) FailureReason() string {
	if i := slices.IndexFunc(s.Conditions, ConditionWithTime.IsReplicaFailure); i >= 0 {
		return s.Conditions[i].Reason
	}
	return ""
}

// DecodeOwner returns a ReplicaSet or ReplicationController in decoded form, without using the
// cache of versions. Callers use it for objects in requests, which etcd has not committed.
func (d *Decoder) DecodeOwner(kind *OwnerKind, o *history.Object) (*Owner, error) {
	var body struct {
		Spec struct {
			Replicas        *int            `json:"replicas"`
			MinReadySeconds int             `json:"minReadySeconds"`
			Selector        json.RawMessage `json:"selector"`
			Template        json.RawMessage `json:"template"`
		} `json:"spec"`
		Status OwnerStatusBody `json:"status"`
	}
	if err := Unmarshal(o.Body, &body); err != nil {
		return nil, err
	}
	selector, err := d.selectors[kind].read(body.Spec.Selector, kind.ParseSelector)
	if err != nil {
		return nil, fmt.Errorf("decoding spec.selector: %w", err)
	}
	pods, err := d.templates.read(body.Spec.Template, decodeTemplate)
	if err != nil {
		return nil, fmt.Errorf("decoding spec.template: %w", err)
	}
	set := ReplicaSetFields{
		Labels:          maps.Clone(o.Labels),
		Template:        pods,
		Revision:        WholeNumber(o.Annotations[RevisionAnnotation], 0),
		RevisionHistory: o.Annotations[RevisionHistoryAnnotation],
		DesiredReplicas: int(WholeNumber(o.Annotations[DesiredReplicasAnnotation], -1)),
		MaxReplicas:     int(WholeNumber(o.Annotations[MaxReplicasAnnotation], 0)),
		Created:         o.Created,

		Annotations: inheritedAnnotations(o.Annotations),
	}
	if ref := o.ControllerRef(); ref != nil {
		set.Controller = *ref
	}
	return &Owner{
		Ref:              o.Ref,
		Kind:             kind,
		Generation:       o.Generation,
		Terminating:      o.Terminating(),
		Replicas:         replicasOrDefault(body.Spec.Replicas),
		Selector:         selector,
		MinReady:         time.Duration(body.Spec.MinReadySeconds) * time.Second,
		Status:           body.Status.OwnerStatus,
		Conditions:       body.Status.Conditions,
		Failing:          body.Status.Failing(),
		ReplicaSetFields: set,
	}, nil
}

// replicasOrDefault returns spec.replicas, or 1 (the default of the API) if the field is
// absent.
func replicasOrDefault(replicas *int) int {
	if replicas == nil {
		return 1
	}
	return *replicas
}
