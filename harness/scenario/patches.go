package scenario

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kube-gauntlet/gauntlet/harness/nearest"
)

// patches reports an error for each patch of pods or their owners that the API server refuses. Such a patch has
// an immutable selector, labels that the selector does not match, or incomplete containers.
func (v *validator) patches() {
	if !v.scenario.onlyKnownWriters() {
		return // a webhook of an operator may change the patch
	}
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
