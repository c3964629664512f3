package trigger

import (
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// Objects contains the latest committed version of each object in a history. State triggers,
// which wait until objects are in some state, read it.
type Objects struct {
	objects map[string]map[history.Ref]*history.Object // by resource and by reference; the references have no resourceVersion
	decoder *objects.Decoder
}

// NewObjects returns an Objects that has read no record, and so contains no objects.
func NewObjects() *Objects {
	return &Objects{objects: map[string]map[history.Ref]*history.Object{}, decoder: objects.NewDecoder()}
}

// Observe reads the next record of the history. It updates the objects if the record is a
// commit, and ignores any other record.
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

// holds reports whether the condition of a state trigger is true now. At least AtLeast and at
// most AtMost matching objects must be in the required state, such as Completed.
func (o *Objects) holds(spec *scenario.StateTrigger) bool {
	n := 0
	for _, object := range o.objects[spec.Resource] {
		if history.MatchGlob(spec.Name, object.Name) && history.MatchOwner(spec.Owner, object.ControllerRef()) && Is(o.decoder, spec.Is, object) {
			n++
		}
	}
	return n >= spec.AtLeast && (spec.AtMost == nil || n <= *spec.AtMost)
}

// Is reports whether an object is in the given state, such as Completed. If the object's body is
// missing or cannot be decoded, Is returns true only for the states Present and Terminating.
func Is(decoder *objects.Decoder, state scenario.ObjectState, object *history.Object) bool {
	switch state {
	case scenario.Present:
		return true
	case scenario.Terminating:
		return object.Terminating()
	}
	switch object.Resource {
	case objects.DeploymentResource:
		d, err := decoder.Deployment(object)
		return err == nil && len(object.Body) > 0 && isRollout(state, d.Complete())
	case objects.PodResource:
		pod, err := decoder.Pod(object)
		return err == nil && isPod(state, pod)
	}
	generic, err := decoder.Generic(object)
	return err == nil && len(object.Body) > 0 && isGeneric(state, generic)
}

// isRollout reports whether an object is in the given state. It knows only the states Progressing
// and Completed; for any other state, the result is false. The parameter complete is true if the
// object's status matches its spec.
func isRollout(state scenario.ObjectState, complete bool) bool {
	switch state {
	case scenario.Progressing:
		return !complete
	case scenario.Completed:
		return complete
	}
	return false
}

// isPod reports whether a pod is in the given state: PodPending, PodFailed or PodReady. For any
// other state, the result is false.
func isPod(state scenario.ObjectState, pod *objects.Pod) bool {
	switch state {
	case scenario.PodPending:
		return pod.Phase == objects.PodPending
	case scenario.PodFailed:
		return pod.Phase == objects.PodFailed
	case scenario.PodReady:
		return pod.Ready && !pod.Terminating
	}
	return false
}

// isGeneric reports whether an object that is neither a Deployment nor a pod is in the given
// state. PodPending and PodFailed depend on status.phase. PodReady depends on the condition
// Ready. Progressing and Completed depend on the replica counts and status.observedGeneration.
func isGeneric(state scenario.ObjectState, g *objects.Generic) bool {
	switch state {
	case scenario.PodPending:
		return g.Phase == objects.PodPending
	case scenario.PodFailed:
		return g.Phase == objects.PodFailed
	case scenario.PodReady:
		return g.Condition(objects.ReadyCondition).Status == "True" && !g.Terminating
	}
	return isRollout(state, g.Complete())
}
