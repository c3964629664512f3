package objects

import (
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// Generic contains the fields that objects of many kinds have, for one version of an
// object. It is immutable. A field with an unusual JSON type counts as absent. An absent
// number is nil.
type Generic struct {
	history.Ref
	Controller         history.Owner // UID is empty if there is no controllerRef
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

// GenericStatus contains the replica counts in the status of an object. An absent count is
// nil.
type GenericStatus struct {
	Replicas          *int
	UpdatedReplicas   *int
	ReadyReplicas     *int
	AvailableReplicas *int
}

// Generic returns the fields that objects of many kinds have. It accepts objects of every kind.
// It returns an error if the body of the object is not a JSON object.
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

// fields returns the fields of a JSON object. It returns nil if raw is not a JSON object.
func fields(raw json.RawMessage) map[string]json.RawMessage {
	var all map[string]json.RawMessage
	if Unmarshal(raw, &all) != nil {
		return nil
	}
	return all
}

// readField decodes a field of a JSON object into the variable to which into points. If the
// field is absent or has another type, it leaves the variable unchanged.
func readField[T any](from map[string]json.RawMessage, name string, into *T) {
	var value T
	if raw, ok := from[name]; ok && Unmarshal(raw, &value) == nil {
		*into = value
	}
}

// String returns the object as kind namespace/name. If package kube does not know the kind, it
// returns the resource instead of the kind.
func (g *Generic) String() string {
	named := g.Ref
	if kind, ok := kube.ByResource(g.Resource); ok {
		named.Resource = kind.Name
	}
	return named.String()
}

// Condition returns the condition of the given type, or the zero value if the status does
// not have it.
func (g *Generic) Condition(name string) Condition {
	for _, c := range g.Conditions {
		if c.Type == name {
			return c
		}
	}
	return Condition{}
}

// Observed reports whether the controller has observed the latest spec. It is true if the
// object has no status.observedGeneration.
func (g *Generic) Observed() bool {
	return g.ObservedGeneration == nil || *g.ObservedGeneration >= g.Generation
}

// Scaling reports whether status.replicas differs from spec.replicas. An absent
// status.replicas counts as 0. The result is false if the object has no spec.replicas.
func (g *Generic) Scaling() bool {
	return g.Replicas != nil && *g.Replicas != valueOrZero(g.Status.Replicas)
}

// Complete reports whether the controller has observed the latest spec and the status agrees
// with it. If the object has spec.replicas, status.replicas and status.readyReplicas must be
// equal to it.
func (g *Generic) Complete() bool {
	return g.Observed() && !g.Scaling() && (g.Replicas == nil || *g.Replicas == valueOrZero(g.Status.ReadyReplicas))
}

// valueOrZero returns the number to which count points, or 0 if count is nil.
func valueOrZero(count *int) int {
	if count == nil {
		return 0
	}
	return *count
}
