package scenario

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kube-gauntlet/gauntlet/harness/nearest"
)

// definition is a CustomResourceDefinition that a step of the workload creates.
type definition struct {
	step   int      // the index of the step
	target Target   // the CustomResourceDefinition
	served []string // the versions that the API server serves, such as example.com/v1
}

// definitions returns the CustomResourceDefinitions that the workload creates, by the kinds that they define. It does not
// return those that a later step changes or deletes.
func (s *Scenario) definitions() map[schema.GroupKind]definition {
	all := map[schema.GroupKind]definition{}
	for i := range s.Workload {
		create, ok := s.Workload[i].Operation.(*Create)
		if !ok || create.Kind != "CustomResourceDefinition" || s.changes(create.Target) {
			continue
		}
		spec, _ := create.Manifest.Copy()["spec"].(map[string]any)
		names, _ := spec["names"].(map[string]any)
		group, _ := spec["group"].(string)
		kind, _ := names["kind"].(string)
		if group == "" || kind == "" {
			continue // operator.CheckScenario reports an invalid definition
		}
		found := definition{step: i, target: create.Target}
		versions, _ := spec["versions"].([]any)
		for _, item := range versions {
			if version, _ := item.(map[string]any); version["served"] == true {
				found.served = append(found.served, fmt.Sprintf("%s/%v", group, version["name"]))
			}
		}
		all[schema.GroupKind{Group: group, Kind: kind}] = found
	}
	return all
}

// changes reports whether a step of any user changes or deletes an object.
func (s *Scenario) changes(target Target) bool {
	return slices.ContainsFunc(s.StepsOfAllUsers(), func(step Step) bool {
		found, acts := step.Target()
		return acts && found == target && operationOf(step.Operation).effect != creates
	})
}

// defined reports an error for each custom resource that its CustomResourceDefinition does not define. A later step may define it, or
// only other versions.
func (v *validator) defined() {
	definitions := v.scenario.definitions()
	if len(definitions) == 0 {
		return
	}
	for i := range v.scenario.Workload {
		create, ok := v.scenario.Workload[i].Operation.(*Create)
		if !ok || !create.Kind.IsGeneric() {
			continue
		}
		gvk := create.kubeKind().GVK()
		of, known := definitions[gvk.GroupKind()]
		if !known {
			continue
		}
		at := stepPath(i) + ".create"
		v.check(of.step < i, at+".kind", "found %s, but only workload[%d] creates the %s; move that step before this one", nearest.WithArticle(create.Kind), of.step, of.target)
		expected := cmp.Or(nearest.List(of.served, "or"), "a version with served: true")
		v.check(slices.Contains(of.served, gvk.GroupVersion().String()), at+".apiVersion", "found %s, which the %s of workload[%d] does not serve; expected %s",
			gvk.GroupVersion(), of.target, of.step, expected)
	}
}
