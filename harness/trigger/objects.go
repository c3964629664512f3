package trigger

import (
	"encoding/json"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// Objects tracks the committed state of all objects in a history.
type Objects struct {
	objects map[string]map[history.Ref]*history.Object // by resource; the keys have no version
}

// NewObjects returns an empty Objects.
func NewObjects() *Objects { return &Objects{objects: map[string]map[history.Ref]*history.Object{}} }

// Observe processes the next record.
func (o *Objects) Observe(r *history.Record) {
	if r.Commit == nil {
		return
	}
	ref := r.Commit.Object.Ref
	ref.Version = 0
	if o.objects[ref.Resource] == nil {
		o.objects[ref.Resource] = map[history.Ref]*history.Object{}
	}
	if r.Commit.Type == history.Deleted {
		delete(o.objects[ref.Resource], ref)
		return
	}
	object := r.Commit.Object
	o.objects[ref.Resource][ref] = &object
}

// holds reports whether the number of objects in the state is within the trigger's
// bounds.
func (o *Objects) holds(spec *scenario.StateTrigger) bool {
	n := 0
	for _, object := range o.objects[spec.Resource] {
		if history.MatchGlob(spec.Name, object.Name) && history.MatchOwner(spec.Owner, object.ControllerRef()) && Is(spec.Is, object) {
			n++
		}
	}
	return n >= spec.AtLeast && (spec.AtMost == nil || n <= *spec.AtMost)
}

// Is reports whether an object is in a state. If its body cannot be decoded, Is returns
// false for all states except Present and Terminating.
func Is(state scenario.ObjectState, object *history.Object) bool {
	switch state {
	case scenario.Present:
		return true
	case scenario.Terminating:
		return object.Terminating()
	case scenario.Progressing, scenario.Completed:
		var d appsv1.Deployment
		if json.Unmarshal(object.Body, &d) != nil {
			return false
		}
		return complete(object.Generation, &d) == (state == scenario.Completed)
	}
	var pod corev1.Pod
	if json.Unmarshal(object.Body, &pod) != nil {
		return false
	}
	switch state {
	case scenario.PodPending:
		return pod.Status.Phase == corev1.PodPending
	case scenario.PodFailed:
		return pod.Status.Phase == corev1.PodFailed
	case scenario.PodReady:
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady {
				return c.Status == corev1.ConditionTrue && !object.Terminating()
			}
		}
	}
	return false
}

// complete reports whether the rollout of a Deployment is complete.
func complete(generation int64, d *appsv1.Deployment) bool {
	desired, status := ptr.Deref(d.Spec.Replicas, 1), d.Status
	return status.ObservedGeneration >= generation && status.UpdatedReplicas == desired &&
		status.Replicas == desired && status.AvailableReplicas == desired
}
