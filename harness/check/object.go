package check

import (
	"cmp"
	"encoding/json"
	"maps"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// podResource is the resource that the owners' children are of.
const podResource = "pods"

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

// unmarshalSome leaves into alone when there is nothing to read.
func unmarshalSome(raw json.RawMessage, into any) error {
	if len(raw) == 0 {
		return nil
	}
	return history.Unmarshal(raw, into)
}

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
	priority
}

// priority is what else decides which of an owner's pods goes first when there
// are too many (contract ReplicaSet 10).
type priority struct {
	assigned bool // to a node
	phase    int  // its place in the order in which phases go: 0 goes first
	cost     int  // of its deletion
	restarts int  // of the container that has restarted most
	created  time.Time
}

// managed reports whether the subject runs the controller of the pod's owner.
func (p *pod) managed() bool {
	return p.controller.UID != "" && kindByName(p.controller.Kind) != nil
}

func (p *pod) orphan() bool { return p.controller.UID == "" }

// sameClaim reports whether two versions of a pod are alike in what decides who
// may claim it.
func (p *pod) sameClaim(other *pod) bool {
	return p.controller == other.controller && p.active == other.active && maps.Equal(p.labels, other.labels)
}

// stands reports whether two versions of a pod are alike in all that decides
// which goes first.
func (p *pod) stands(other *pod) bool {
	return p.sameClaim(other) && p.priority == other.priority && p.ready == other.ready && p.readySince.Equal(other.readySince)
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
	setFacts
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

// setFacts is what a Deployment's controller goes by in a ReplicaSet.
type setFacts struct {
	controller history.Owner // without UID: nobody's
	labels     labels.Set
	template   *template
	revision   int64 // as annotated; 0: not at all
	desired    int   // replicas of the Deployment when it was last scaled, as annotated; -1: not at all
	most       int   // replicas that its ReplicaSets might have together then, as annotated; 0: not at all
	created    time.Time
	// annotations are those that a Deployment may have given it.
	annotations map[string]string
}

// before reports whether a ReplicaSet is older than another, by name where that
// is equal.
func (o *owner) before(other *owner) bool {
	return cmp.Or(o.created.Compare(other.created), strings.Compare(o.Name, other.Name)) < 0
}

// String is how evidence names the owner: kind namespace/name.
func (o *owner) String() string { return o.kind.name + " " + o.Namespace + "/" + o.Name }
