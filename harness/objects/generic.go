package objects

import (
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// Generic contains the fields that objects of many kinds have, such as spec.replicas, for one
// version of an object. It is immutable. A field whose JSON has an unexpected type counts as
// absent. An absent number is nil.
type Generic struct {
	history.Ref
	Controller         history.Owner // the controllerRef; its UID is empty if the object has none
	Labels             labels.Set
	Generation         int64
	Created            time.Time
	Terminating        bool
	Replicas           *int   // spec.replicas
	ObservedGeneration *int64 // status.observedGeneration
	Phase              string // status.phase
	Conditions         []Condition
	Status             GenericStatus
}

// GenericStatus contains the replica counts in the status of an object of any kind. A count is
// nil if the status does not have it.
type GenericStatus struct {
	Replicas          *int
	UpdatedReplicas   *int
	ReadyReplicas     *int
	AvailableReplicas *int
}

// Generic returns the fields that objects of many kinds have, in decoded form. If the Decoder has
// decoded this version before, Generic returns the cached result. It accepts objects of every
// kind. It returns an error if the body of the object is not a JSON object.
func (d *Decoder) Generic(o *history.Object) (*Generic, error) {
	return decodeOnce(&d.generic, o, decodeGeneric)
}

func decodeGeneric(o *history.Object) (*Generic, error) {
	var body struct{ Spec, Status json.RawMessage }
	if err := Unmarshal(o.Body, &body); err != nil {
		return nil, err
	}
	g := &Generic{
		Ref:         o.Ref,
		Labels:      o.Labels,
		Generation:  o.Generation,
		Created:     o.Created,
		Terminating: o.Terminating(),
	}
	if ref := o.ControllerRef(); ref != nil {
		g.Controller = *ref
	}
	spec, status := fields(body.Spec), fields(body.Status)
	readField(spec, "replicas", &g.Replicas)
	readField(status, "observedGeneration", &g.ObservedGeneration)
	readField(status, "phase", &g.Phase)
	readField(status, "conditions", &g.Conditions)
	readField(status, "replicas", &g.Status.Replicas)
	readField(status, "updatedReplicas", &g.Status.UpdatedReplicas)
	readField(status, "readyReplicas", &g.Status.ReadyReplicas)
	readField(status, "availableReplicas", &g.Status.AvailableReplicas)
	return g, nil
}

// fields returns the fields of a JSON object without decoding the values. The keys of the map are
// the names of the fields. The result is nil if the argument raw is not a JSON object.
func fields(raw json.RawMessage) map[string]json.RawMessage {
	var all map[string]json.RawMessage
	if Unmarshal(raw, &all) != nil {
		return nil
	}
	return all
}

// readField decodes one field of a JSON object into a variable. The argument from is the object,
// and into points to the variable. If the field is absent or its JSON has another type, readField
// does not change the variable.
func readField[T any](from map[string]json.RawMessage, name string, into *T) {
	var value T
	if raw, ok := from[name]; ok && Unmarshal(raw, &value) == nil {
		*into = value
	}
}

// String returns the object as text, such as "ReplicaSet default/web". If the table in package
// kube does not contain the kind, the text has the resource instead of the kind.
func (g *Generic) String() string {
	named := g.Ref
	if kind, ok := kube.ByResource(g.Resource); ok {
		named.Resource = kind.Name
	}
	return named.String()
}

// Condition returns the condition with the given type, such as "Ready". It returns the zero
// value if the status does not have this condition.
func (g *Generic) Condition(name string) Condition {
	for _, c := range g.Conditions {
		if c.Type == name {
			return c
		}
	}
	return Condition{}
}

// Observed reports whether the controller has observed the latest spec:
// status.observedGeneration is at least metadata.generation. It returns true if the object has
// no status.observedGeneration.
func (g *Generic) Observed() bool {
	return g.ObservedGeneration == nil || *g.ObservedGeneration >= g.Generation
}

// Scaling reports whether status.replicas differs from spec.replicas. An absent status.replicas
// counts as 0. Scaling returns false if the object has no spec.replicas.
func (g *Generic) Scaling() bool {
	return g.Replicas != nil && *g.Replicas != valueOrZero(g.Status.Replicas)
}

// Complete reports whether the status says that the controller has finished its work. The
// controller must have observed the latest spec. If the object has spec.replicas,
// status.replicas and status.readyReplicas must have the same value.
func (g *Generic) Complete() bool {
	return g.Observed() && !g.Scaling() && (g.Replicas == nil || *g.Replicas == valueOrZero(g.Status.ReadyReplicas))
}

// valueOrZero returns the number to which the argument count points, or 0 if it is nil.
func valueOrZero(count *int) int {
	if count == nil {
		return 0
	}
	return *count
}
