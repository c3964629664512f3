package check

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

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

// ownerKinds lists what the subject runs. A pod that is controlled by anything
// else is none of its business.
var ownerKinds = []ownerKind{
	{name: "ReplicaSet", resource: "replicasets.apps", selector: labelSelector},
	{name: "ReplicationController", resource: "replicationcontrollers", selector: equalitySelector},
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
	return json.Unmarshal(raw, into)
}

// pod is what the checks need of one version of a pod. It never changes.
type pod struct {
	history.Ref
	labels      labels.Set
	controller  history.Owner // without UID: the pod is an orphan
	terminating bool
	active      bool // not terminating, neither Failed nor Succeeded
	ready       bool
	readySince  time.Time
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

// owner is what the checks need of one version of an owner. It never changes.
type owner struct {
	history.Ref
	kind        *ownerKind
	generation  int64
	terminating bool
	replicas    int // spec.replicas
	selector    labels.Selector
	template    labels.Selector // matches pods that carry every label of the template
	minReady    time.Duration
	status      ownerStatus
}

// ownerStatus is what the controller says of an owner.
type ownerStatus struct {
	Replicas             int   `json:"replicas"`
	FullyLabeledReplicas int   `json:"fullyLabeledReplicas"`
	ReadyReplicas        int   `json:"readyReplicas"`
	AvailableReplicas    int   `json:"availableReplicas"`
	ObservedGeneration   int64 `json:"observedGeneration"`
}

// String is how evidence names the owner: kind namespace/name.
func (o *owner) String() string { return o.kind.name + " " + o.Namespace + "/" + o.Name }

// decoder turns recorded objects into pods and owners. One version is recorded
// up to three times (truth, delivery, response), most often within a moment, so
// the decoder remembers as many as it decoded last.
type decoder struct {
	known  map[version]any // *pod or *owner
	oldest []version       // a ring of the keys of known
	next   int
}

type version struct {
	uid types.UID
	at  history.Version
}

// decodedMax is how many decoded versions are remembered: a few seconds' worth.
const decodedMax = 1 << 14

func newDecoder() *decoder { return &decoder{known: map[version]any{}} }

// pod decodes a pod.
func (d *decoder) pod(o *history.Object) (*pod, error) { return remember(d, o, decodePod) }

// owner decodes an owner of the given kind.
func (d *decoder) owner(kind *ownerKind, o *history.Object) (*owner, error) {
	return remember(d, o, func(o *history.Object) (*owner, error) { return decodeOwner(kind, o) })
}

func remember[T any](d *decoder, o *history.Object, decode func(*history.Object) (*T, error)) (*T, error) {
	key := version{uid: o.UID, at: o.Version}
	if known, ok := d.known[key].(*T); ok {
		return known, nil
	}
	decoded, err := decode(o)
	if err != nil {
		return nil, fmt.Errorf("%s, version %d: %w", o.Ref, o.Version, err)
	}
	if len(d.oldest) < decodedMax {
		d.oldest = append(d.oldest, key)
	} else {
		delete(d.known, d.oldest[d.next])
		d.oldest[d.next] = key
		d.next = (d.next + 1) % decodedMax
	}
	d.known[key] = decoded
	return decoded, nil
}

func decodePod(o *history.Object) (*pod, error) {
	var body struct {
		Status struct {
			Phase      string
			Conditions []struct {
				Type, Status       string
				LastTransitionTime time.Time
			}
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
	p.active = !p.terminating && phase != "Failed" && phase != "Succeeded"
	for _, condition := range body.Status.Conditions {
		if condition.Type == "Ready" && condition.Status == "True" {
			p.ready, p.readySince = true, condition.LastTransitionTime
		}
	}
	return p, nil
}

func decodeOwner(kind *ownerKind, o *history.Object) (*owner, error) {
	var body struct {
		Spec struct {
			Replicas        *int
			MinReadySeconds int
			Selector        json.RawMessage
			Template        struct {
				Metadata struct{ Labels labels.Set }
			}
		}
		Status ownerStatus
	}
	if err := unmarshalSome(o.Body, &body); err != nil {
		return nil, err
	}
	selector, err := kind.selector(body.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("spec.selector: %w", err)
	}
	replicas := 1 // the API's default
	if body.Spec.Replicas != nil {
		replicas = *body.Spec.Replicas
	}
	return &owner{
		Ref:         o.Ref,
		kind:        kind,
		generation:  o.Generation,
		terminating: o.Terminating(),
		replicas:    replicas,
		selector:    selector,
		template:    body.Spec.Template.Metadata.Labels.AsSelectorPreValidated(),
		minReady:    time.Duration(body.Spec.MinReadySeconds) * time.Second,
		status:      body.Status,
	}, nil
}
