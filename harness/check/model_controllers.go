package check

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// newTestedControllers returns the controllers under test. No rows mean the default
// controllers.
func newTestedControllers(rows []kube.Controller) *testedControllers {
	if len(rows) == 0 {
		rows, _ = kube.ControllersNamed() // without names, there is no error
	}
	tested := &testedControllers{rows: rows}
	for _, c := range rows {
		if !hasModel(c.Kind) {
			tested.generic = append(tested.generic, c)
		}
	}
	return tested
}

// hasModel reports whether the model has a state of its own for objects of a kind:
// ownerState, rolloutState or serviceState.
func hasModel(kind string) bool {
	return objects.OwnerKindByName(kind) != nil || kind == kube.Deployment || kind == kube.Service
}

// has reports whether a controller under test has a trait.
func (tested *testedControllers) has(trait kube.Trait) bool {
	return slices.ContainsFunc(tested.rows, func(c kube.Controller) bool { return c.Has(trait) })
}

// reconcilesWith reports whether a controller under test that reconciles the kind has the
// trait.
func (tested *testedControllers) reconcilesWith(kind string, trait kube.Trait) bool {
	return slices.ContainsFunc(tested.rows, func(c kube.Controller) bool { return c.Kind == kind && c.Has(trait) })
}

// reconciles reports whether a controller under test reconciles the kind.
func (tested *testedControllers) reconciles(kind string) bool {
	return reconciledBy(tested.rows, kind)
}

// genericKind reports whether a generic controller under test reconciles the kind.
func (tested *testedControllers) genericKind(kind string) bool {
	return reconciledBy(tested.generic, kind)
}

func reconciledBy(rows []kube.Controller, kind string) bool {
	return slices.ContainsFunc(rows, func(c kube.Controller) bool { return c.Kind == kind })
}

// genericKindOf returns the kind of a resource if a generic controller under test reconciles
// it, else "".
func (tested *testedControllers) genericKindOf(resource string) string {
	for _, c := range tested.generic {
		if isResourceOf(c.Kind, resource) {
			return c.Kind
		}
	}
	return ""
}

// isResourceOf reports whether a resource is the one of a kind. For a kind without a row, it
// compares only the plural name, because the API group is unknown.
func isResourceOf(kind, resource string) bool {
	if row, ok := kube.Named(kind); ok {
		return row.Resource() == resource
	}
	plural, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Kind: kind})
	name, _, _ := strings.Cut(resource, ".")
	return name == plural.Resource
}

// watches reports whether a generic controller under test watches the kind.
func (tested *testedControllers) watches(kind string) bool {
	return slices.ContainsFunc(tested.generic, func(c kube.Controller) bool { return slices.Contains(c.Watches, kind) })
}

// genericWrites reports whether a generic controller under test writes the kind.
func (tested *testedControllers) genericWrites(kind string) bool {
	return slices.ContainsFunc(tested.generic, func(c kube.Controller) bool { return slices.Contains(c.Writes, kind) })
}

// requiredFor returns the resources that every generic controller of the kind watches. The
// resource of the kind itself comes first. Kinds without a row are not in the result.
func (tested *testedControllers) requiredFor(kind string) []string {
	var required []string
	for _, c := range tested.generic {
		if c.Kind != kind {
			continue
		}
		watched := resourcesOf(c)
		if required == nil {
			required = watched
		}
		required = slices.DeleteFunc(required, func(resource string) bool { return !slices.Contains(watched, resource) })
	}
	return required
}

// resourcesOf returns the resources that a controller watches, first the one that it
// reconciles.
func resourcesOf(c kube.Controller) []string {
	var resources []string
	for _, kind := range append([]string{c.Kind}, c.Watches...) {
		if row, ok := kube.Named(kind); ok && !slices.Contains(resources, row.Resource()) {
			resources = append(resources, row.Resource())
		}
	}
	return resources
}

// manages reports whether a controller under test manages the pods of a pod's owner.
func (tested *testedControllers) manages(p *objects.Pod) bool {
	return p.HasManagedOwner() && tested.reconciles(p.Controller.Kind)
}
