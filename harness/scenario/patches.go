package scenario

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/harness/nearest"
)

// patches reports an error for each patch of pods or their owners that the API server refuses. Such a patch has
// an immutable selector, labels that the selector does not match, or incomplete containers.
func (v *validator) patches() {
	if !v.scenario.onlyKnownWriters() {
		return // a webhook of an operator may change the patch
	}
	v.progressDeadlines()
	created := map[Target]*Create{}
	for i := range v.scenario.Workload {
		switch op := v.scenario.Workload[i].Operation.(type) {
		case *Create:
			created[op.Target] = op
		case *Patch:
			if create := created[op.Target]; create != nil {
				v.refusedPatch(stepPath(i)+".patch.merge", create, op.Merge.Copy())
			}
		}
	}
}

// refusedPatch reports an error for each field with which the API server refuses a merge patch. The argument create is the step
// that has created the object.
func (v *validator) refusedPatch(at string, create *Create, merge map[string]any) {
	spec, _ := merge["spec"].(map[string]any)
	pods, place := spec, at+".spec"
	if create.Kind != Pod {
		template, _ := spec["template"].(map[string]any)
		pods, _ = template["spec"].(map[string]any)
		place = at + ".spec.template.spec"
	}
	if create.Kind == Pod || create.Kind.owner() {
		v.containers(place+".containers", pods["containers"])
	}
	v.patchedValues(at+".spec", create.Kind, spec)
	if create.Kind != Deployment && create.Kind != ReplicaSet {
		return
	}
	for _, field := range []struct {
		path   []string
		reason string
	}{
		{[]string{"spec", "selector", "matchLabels"}, "because the selector of a %s cannot change"},
		{[]string{"spec", "template", "metadata", "labels"}, "because the selector of the %s must match the labels"},
	} {
		labels, _, _ := unstructured.NestedMap(merge, field.path...)
		for _, key := range sortedKeys(labels) {
			path := at
			for _, name := range field.path {
				path = join(path, name)
			}
			old, selected := create.Selector[key]
			v.check(labels[key] == old || !selected, join(path, key), "found %s; expected %s, "+field.reason, encodeJSON(labels[key]).describe(), old, create.Kind)
		}
	}
}

// patchedValues reports an error for each value in the spec of a patch that the API server refuses. The argument at is the
// path of the spec.
func (v *validator) patchedValues(at string, kind Kind, spec map[string]any) {
	text := func(path string, value any, known ...string) {
		if found, ok := value.(string); ok {
			oneOf(v, path, found, known...)
		}
	}
	if kind == Service {
		text(at+".type", spec["type"], "ClusterIP", "NodePort", "LoadBalancer", "ExternalName")
	}
	if kind == Deployment {
		strategy, _ := spec["strategy"].(map[string]any)
		text(at+".strategy.type", strategy["type"], string(RollingUpdate), string(Recreate))
	}
	if kind.owner() {
		seconds, ok := spec["minReadySeconds"].(int64)
		v.check(!ok || seconds >= 0, at+".minReadySeconds", "found %d; expected at least 0", seconds)
	}
}

// progressDeadlines reports an error for each configure step after which a Deployment has no longer progress deadline than
// minReadySeconds. The API server refuses it. There is none about Deployments that a patch or another user may change.
func (v *validator) progressDeadlines() {
	type limits struct{ deadlineSeconds, minReadySeconds int }
	known := map[Target]limits{}
	for i := range v.scenario.Workload {
		switch op := v.scenario.Workload[i].Operation.(type) {
		case *Create:
			if op.Kind == Deployment {
				known[op.Target] = limits{ptr.Deref(op.ProgressDeadlineSeconds, progressDeadlineSecondsDefault), op.MinReadySeconds}
			}
		case *Patch:
			delete(known, op.Target)
		case *Configure:
			before, ok := known[op.Target]
			if !ok || slices.ContainsFunc(v.scenario.stepsOfOthers(), func(s Step) bool { target, _ := s.Target(); return target.Name == op.Name }) {
				continue
			}
			after := limits{ptr.Deref(op.ProgressDeadlineSeconds, before.deadlineSeconds), ptr.Deref(op.MinReadySeconds, before.minReadySeconds)}
			v.check(after.deadlineSeconds > after.minReadySeconds, stepPath(i)+".configure",
				"found minReadySeconds %d for a Deployment whose progressDeadlineSeconds is %d; expected a progressDeadlineSeconds that is larger", after.minReadySeconds, after.deadlineSeconds)
			known[op.Target] = after
		}
	}
}

// progressDeadlineSecondsDefault is the progress deadline of a Deployment without the field.
const progressDeadlineSecondsDefault = 600

// containers reports an error for each container in a patch that lacks a name or an image. A merge patch replaces the whole
// list, so that nothing completes them.
func (v *validator) containers(at string, value any) {
	list, _ := value.([]any)
	for i, item := range list {
		container, _ := item.(map[string]any)
		missing := slices.DeleteFunc([]string{"name", "image"}, func(name string) bool { return container[name] != nil })
		v.check(len(missing) == 0, fmt.Sprintf("%s[%d]", at, i), "found a container without %s; expected its name and image, because a merge patch replaces the whole list",
			nearest.List(missing, "and"))
	}
}
