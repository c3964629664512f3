package trigger

import (
	"encoding/json"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// Objects is what there is, by the truth of a history as far as it has come.
type Objects struct {
	objects map[string]map[history.Ref]*history.Object // by resource; the refs have no version
}

// NewObjects makes one in which nothing is.
func NewObjects() *Objects { return &Objects{objects: map[string]map[history.Ref]*history.Object{}} }

// Observe takes in the next record.
func (w *Objects) Observe(r *history.Record) {
	if r.Commit == nil {
		return
	}
	ref := r.Commit.Object.Ref
	ref.Version = 0
	if w.objects[ref.Resource] == nil {
		w.objects[ref.Resource] = map[history.Ref]*history.Object{}
	}
	if r.Commit.Type == history.Deleted {
		delete(w.objects[ref.Resource], ref)
		return
	}
	object := r.Commit.Object
	w.objects[ref.Resource][ref] = &object
}

// holds reports whether the world is as a moment wants it.
func (w *Objects) holds(m *scenario.StateTrigger) bool {
	n := 0
	for _, object := range w.objects[m.Resource] {
		if history.MatchGlob(m.Name, object.Name) && history.MatchOwner(m.Owner, object.ControllerRef()) && Is(m.Is, object) {
			n++
		}
	}
	return n >= m.AtLeast && (m.AtMost == nil || n <= *m.AtMost)
}

// Is reports whether an object is in a state. One that cannot be read is in none.
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

// complete reports whether a Deployment's rollout is.
func complete(generation int64, d *appsv1.Deployment) bool {
	desired, status := ptr.Deref(d.Spec.Replicas, 1), d.Status
	return status.ObservedGeneration >= generation && status.UpdatedReplicas == desired &&
		status.Replicas == desired && status.AvailableReplicas == desired
}
