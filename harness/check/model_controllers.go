package check

import (
	"slices"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// newTestedControllers returns the controllers under test, and finds the generic ones. A generic
// controller reconciles another kind than ReplicaSet, ReplicationController, Deployment and
// Service, such as Job. If the parameter rows is empty, the controllers under test are those that
// have a contract.
func newTestedControllers(rows []kube.Controller) *testedControllers {
	if len(rows) == 0 {
		rows, _ = kube.ControllersNamed() // ControllersNamed fails only for an unknown name
	}
	tested := &testedControllers{rows: rows}
	for _, c := range rows {
		if !hasModel(c.Kind) {
			tested.generic = append(tested.generic, c)
		}
	}
	return tested
}

// hasModel reports whether the model knows the fields of this kind. It knows ReplicaSets,
// ReplicationControllers, Deployments and Services. A controller of any other kind is generic.
func hasModel(kind string) bool {
	row, _ := kube.Named(kind)
	switch row.Decoding {
	case kube.AsReplicaSet, kube.AsReplicationController, kube.AsDeployment, kube.AsService:
		return true
	}
	return false
}

// has reports whether at least one controller under test has the given trait, such as slow-start.
func (tested *testedControllers) has(trait kube.Trait) bool {
	return slices.ContainsFunc(tested.rows, func(c kube.Controller) bool { return c.Has(trait) })
}

// reconcilesWith reports whether any controller under test has the trait, such as slow-start, and
// reconciles objects of this kind.
func (tested *testedControllers) reconcilesWith(kind string, trait kube.Trait) bool {
	return slices.ContainsFunc(tested.rows, func(c kube.Controller) bool { return c.Kind == kind && c.Has(trait) })
}

// reconciles reports whether any controller under test reconciles objects of this kind.
func (tested *testedControllers) reconciles(kind string) bool {
	return reconciledBy(tested.rows, kind)
}

// genericKind reports whether a controller under test reconciles this kind, although the model does
// not know its fields. The model knows ReplicaSets, ReplicationControllers, Deployments and
// Services.
func (tested *testedControllers) genericKind(kind string) bool {
	return reconciledBy(tested.generic, kind)
}

// reconciledBy reports whether any of the given controllers reconciles objects of this kind.
func reconciledBy(rows []kube.Controller, kind string) bool {
	return slices.ContainsFunc(rows, func(c kube.Controller) bool { return c.Kind == kind })
}

// genericKindOf returns the kind that belongs to a resource, such as Job for jobs.batch. It
// returns "" unless a generic controller under test (one without a contract) reconciles that
// kind.
func (tested *testedControllers) genericKindOf(resource string) string {
	for _, c := range tested.generic {
		if isResourceOf(c.Kind, resource) {
			return c.Kind
		}
	}
	return ""
}

// isResourceOf reports whether the objects of a resource have the given kind, such as jobs.batch
// and Job. If package kube has no table row for the kind, its API group is unknown. isResourceOf
// then compares only the plural name.
func isResourceOf(kind, resource string) bool {
	if row, ok := kube.Named(kind); ok {
		return row.Resource() == resource
	}
	name, _, _ := strings.Cut(resource, ".")
	return name == kube.Plural(kind)
}

// watches reports whether any generic controller under test (one without a contract) watches
// objects of this kind.
func (tested *testedControllers) watches(kind string) bool {
	return slices.ContainsFunc(tested.generic, func(c kube.Controller) bool { return slices.Contains(c.Watches, kind) })
}

// genericWrites reports whether any generic controller under test (one without a contract) writes
// objects of this kind.
func (tested *testedControllers) genericWrites(kind string) bool {
	return slices.ContainsFunc(tested.generic, func(c kube.Controller) bool { return slices.Contains(c.Writes, kind) })
}

// writesByTime reports whether any controller under test may write objects of this resource
// because time has passed. Such a controller has the trait acts-by-time, as the CronJob
// controller has.
func (tested *testedControllers) writesByTime(resource string) bool {
	return slices.ContainsFunc(tested.rows, func(c kube.Controller) bool {
		return c.Has(kube.ActsByTime) && slices.ContainsFunc(c.Writes, func(kind string) bool { return isResourceOf(kind, resource) })
	})
}

// requiredFor returns the resources that must be in the cache before a generic controller of this
// kind can work. A generic controller is one without a contract, such as the Job controller. The
// result contains the resources that every generic controller of the kind watches, beginning with
// the kind's own resource.
//
// It leaves out resources that only some of these controllers watch. It also leaves out kinds
// without a table row in package kube.
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

// resourcesOf returns the resources that a controller watches, beginning with the resource that the
// controller reconciles. It leaves out kinds without a table row in package kube.
func resourcesOf(c kube.Controller) []string {
	var resources []string
	for _, kind := range append([]string{c.Kind}, c.Watches...) {
		if row, ok := kube.Named(kind); ok && !slices.Contains(resources, row.Resource()) {
			resources = append(resources, row.Resource())
		}
	}
	return resources
}

// manages reports whether a ReplicaSet or ReplicationController controls the pod, and the
// controller of that kind is under test.
func (tested *testedControllers) manages(p *objects.Pod) bool {
	return p.HasManagedOwner() && tested.reconciles(p.Controller.Kind)
}
