package workload

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// patch is the body and the type of a PATCH request. The request changes only the fields in the
// body.
type patch struct {
	kind         types.PatchType
	body         any
	subresources []string // the subresource that the request changes; none for the object itself
}

// fields is a JSON object in a patch. In a JSON merge patch, a field with the value nil is
// removed.
type fields map[string]any

// merge returns a JSON merge patch with the given fields. The error is always nil; callers can
// return both results directly.
func merge(body fields) (patch, error) { return patch{kind: types.MergePatchType, body: body}, nil }

// patchOf returns the patch that an operation, such as a scale, sends. It returns an error for
// an operation that creates or deletes objects.
func patchOf(operation scenario.Operation) (patch, error) {
	switch o := operation.(type) {
	case *scenario.Scale:
		return merge(fields{"spec": fields{"replicas": *o.Replicas}})
	case *scenario.Rollout:
		spec := fields{"template": fields{"metadata": fields{"annotations": fields{versionAnnotation: o.Version}}}}
		if o.Replicas != nil {
			spec["replicas"] = *o.Replicas
		}
		return merge(fields{"spec": spec})
	case *scenario.Pause:
		return merge(fields{"spec": fields{"paused": true}})
	case *scenario.Resume:
		return merge(fields{"spec": fields{"paused": false}})
	case *scenario.Rollback:
		return merge(fields{"metadata": fields{"annotations": fields{appsv1.DeprecatedRollbackTo: fmt.Sprint(o.Revision)}}})
	case *scenario.Label:
		return merge(fields{"metadata": fields{"labels": mapPatch(o.Labels, o.Remove)}})
	case *scenario.Annotate:
		return merge(fields{"metadata": fields{"annotations": mapPatch(o.Annotations, o.Remove)}})
	case *scenario.Patch:
		if len(o.Status) > 0 {
			return patch{kind: types.MergePatchType, body: fields{"status": o.Status.Copy()}, subresources: []string{"status"}}, nil
		}
		return merge(o.Merge.Copy())
	case *scenario.Select:
		return selectPatch(o), nil
	case *scenario.Configure:
		return configurePatch(o)
	case *scenario.Publish:
		return publishPatch(o)
	}
	return patch{}, fmt.Errorf("found operation %T; expected an operation that patches an object, such as scale", operation)
}

// mapPatch returns the part of a merge patch that changes labels or annotations. The argument set
// contains the keys to set, with their values. The argument remove lists the keys to remove.
func mapPatch(set map[string]string, remove []string) fields {
	changed := fields{}
	for key, value := range set {
		changed[key] = value
	}
	for _, key := range remove {
		changed[key] = nil
	}
	return changed
}

// selectPatch returns a JSON patch that replaces a selector. A merge patch would not remove the
// labels of the old selector.
func selectPatch(o *scenario.Select) patch {
	body := []fields{{"op": "add", "path": "/spec/selector", "value": o.Selector}}
	if o.Kind == scenario.ReplicationController { // the labels of the pod template must match the selector
		body = append(body, fields{"op": "add", "path": "/spec/template/metadata/labels", "value": o.Selector})
	}
	return patch{kind: types.JSONPatchType, body: body}
}

// configurePatch returns a merge patch with the fields that a configure operation sets.
func configurePatch(o *scenario.Configure) (patch, error) {
	spec := fields{}
	for name, value := range map[string]*int{
		"minReadySeconds": o.MinReadySeconds, "revisionHistoryLimit": o.RevisionHistoryLimit, "progressDeadlineSeconds": o.ProgressDeadlineSeconds,
	} {
		if value != nil {
			spec[name] = *value
		}
	}
	switch o.Strategy {
	case scenario.Recreate:
		spec["strategy"] = fields{"type": o.Strategy, "rollingUpdate": nil}
	case scenario.RollingUpdate: // nil resets a field to the API's default
		spec["strategy"] = fields{"type": o.Strategy, "rollingUpdate": fields{
			"maxSurge": intOrString(o.MaxSurge), "maxUnavailable": intOrString(o.MaxUnavailable)}}
	}
	return merge(fields{"spec": spec})
}

// publishPatch returns a merge patch with the fields of a Service that a publish step sets. If
// the step sets spec.type, the patch also removes the old value of spec.externalName.
func publishPatch(o *scenario.Publish) (patch, error) {
	spec := fields{}
	if o.Type != "" {
		spec["type"], spec["externalName"] = o.Type, nil
	}
	if o.ExternalName != "" {
		spec["externalName"] = o.ExternalName
	}
	if o.Ports != nil {
		spec["ports"] = servicePorts(o.Ports)
	}
	if o.PublishNotReadyAddresses != nil {
		spec["publishNotReadyAddresses"] = *o.PublishNotReadyAddresses
	}
	return merge(fields{"spec": spec})
}

// edit patches every object that the target names, and retries on a conflict with another
// writer. It returns a reference to the changed object, or nil if the target names several
// objects.
//
// Controllers and faults may delete pods, so a missing pod is not an error.
func (u *user) edit(ctx context.Context, target scenario.Target, operation scenario.Operation) (*history.Ref, error) {
	change, err := patchOf(operation)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(change.body)
	if err != nil {
		return nil, err
	}
	kind, err := u.kind(target.Kind)
	if err != nil {
		return nil, err
	}
	names := u.names(target)
	var last *history.Ref
	for _, name := range names {
		var edited metav1.Object
		err := u.retryUnavailable(ctx, func(bool) error {
			return retry.RetryOnConflict(retry.DefaultBackoff, func() (err error) {
				edited, err = kind.patch(ctx, name, change.kind, body, change.subresources...)
				return err
			})
		})
		if target.Kind == scenario.Pod && apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if last, err = ref(kind.Resource(), edited); err != nil {
			return nil, err
		}
	}
	if len(names) > 1 {
		return nil, nil
	}
	return last, nil
}
