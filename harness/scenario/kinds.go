package scenario

import (
	"slices"

	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// Kind is the kind of an object of the workload. Create has fields of its own for the kinds
// below. Any other kind is generic: its objects are created from a manifest.
type Kind string

// The kinds that are not generic.
const (
	ReplicaSet            Kind = kube.ReplicaSet
	ReplicationController Kind = kube.ReplicationController
	Deployment            Kind = kube.Deployment
	Pod                   Kind = kube.Pod
	Service               Kind = kube.Service
	Endpoints             Kind = kube.Endpoints
)

// kindRow describes how a workload can use the objects of a kind. The supported operations
// are in the table of operations.
type kindRow struct {
	kind Kind
	// fields are the fields of a create of the kind, besides kind and name.
	fields []string
	// untils are the conditions of the kind, besides those of [Until.FieldCondition].
	untils []Until
}

var kinds = []kindRow{
	{ReplicaSet, ownerFields, ownerUntils},
	{ReplicationController, ownerFields, ownerUntils},
	{
		Deployment,
		append(slices.Clip(ownerFields), "version", "strategy", "maxSurge", "maxUnavailable",
			"revisionHistoryLimit", "progressDeadlineSeconds", "paused"),
		[]Until{Scaled, Ready, Available, Complete, Gone},
	},
	{Pod, []string{"count", "labels", "controller"}, []Until{Ready, Gone}},
	{
		Service,
		[]string{"labels", "selector", "ports", "headless", "publishNotReadyAddresses", "externalName"},
		[]Until{Served, Gone},
	},
	{Endpoints, []string{"labels", "leader"}, []Until{Gone}},
}

// genericRow is the row of every generic kind.
var genericRow = kindRow{fields: []string{"apiVersion", "manifest"}, untils: []Until{Gone}}

var (
	ownerFields = []string{"replicas", "labels", "selector", "minReadySeconds"}
	ownerUntils = []Until{Scaled, Ready, Available, Gone}

	allKinds = kindsWith("")         // all kinds that are not generic
	owners   = kindsWith("replicas") // kinds with replicas, a selector and a pod template
)

// kindsWith returns the kinds whose create has the field. It returns all kinds of the table
// for the empty field.
func kindsWith(field string) []Kind {
	var with []Kind
	for _, row := range kinds {
		if field == "" || slices.Contains(row.fields, field) {
			with = append(with, row.kind)
		}
	}
	return with
}

// row returns the row of the kind in the table, or the row of generic kinds.
func (k Kind) row() kindRow {
	for _, row := range kinds {
		if row.kind == k {
			return row
		}
	}
	return genericRow
}

// IsGeneric reports whether objects of the kind are created from a manifest.
func (k Kind) IsGeneric() bool { return !slices.Contains(allKinds, k) }

// owner reports whether objects of the kind have replicas.
func (k Kind) owner() bool { return slices.Contains(owners, k) }

// makesPods reports whether a create of the kind defines the labels of pods. If so, the
// field labels of the create sets the labels of the pods, not those of the object.
func (k Kind) makesPods() bool { return k.owner() || k == Pod }

// GenericKinds returns the generic kinds of the objects that the workload creates. They are in
// the order of their first create, or in the order of the external workload.
//
// A CustomResourceDefinition in the workload defines the plural name and the scope of its
// kind. [kube.Generic] describes other kinds.
func (s *Scenario) GenericKinds() []kube.Kind {
	var found []kube.Kind
	for _, create := range s.creates() {
		if create.Kind != "" && create.Kind.IsGeneric() && !hasKind(found, create.Kind) {
			found = append(found, s.describe(create))
		}
	}
	if s.ExternalWorkload != nil {
		for _, kind := range s.ExternalWorkload.Kinds {
			found = append(found, kind.describe())
		}
	}
	return found
}

// creates returns the creates of the workload.
func (s *Scenario) creates() []*Create {
	var all []*Create
	for i := range s.Workload {
		if create, ok := s.Workload[i].Operation.(*Create); ok {
			all = append(all, create)
		}
	}
	return all
}

func hasKind(in []kube.Kind, kind Kind) bool {
	return slices.ContainsFunc(in, func(k kube.Kind) bool { return k.Name == string(kind) })
}

// describe returns the kind of the object that a generic create creates.
func (s *Scenario) describe(create *Create) kube.Kind {
	kind := create.describe()
	for _, other := range s.creates() {
		spec, _ := other.Manifest["spec"].(map[string]any)
		names, _ := spec["names"].(map[string]any)
		if other.Kind != "CustomResourceDefinition" || spec["group"] != kind.GVR.Group || names["kind"] != kind.Name {
			continue
		}
		if plural, ok := names["plural"].(string); ok {
			return kube.CustomResource(kind.GVK(), plural, spec["scope"] == "Cluster")
		}
	}
	return kind
}

// describe returns the kind of the object that a generic create creates, without regard to
// the CustomResourceDefinitions of the workload.
func (c *Create) describe() kube.Kind {
	if row, ok := kube.Named(string(c.Kind)); ok && c.APIVersion == "" {
		return row
	}
	return kube.Generic(kube.SplitGVK(c.APIVersion, string(c.Kind)))
}

// Controllers returns the controllers under test. It returns nil if subject.controllers has
// an unknown name, which Parse rejects.
func (s *Scenario) Controllers() []kube.Controller {
	controllers, err := kube.ControllersNamed(s.Subject.Controllers...)
	if err != nil {
		return nil
	}
	return controllers
}

// ObservedKinds returns the kinds of the objects that a run of the scenario records. These
// are the kinds of the default controllers, those that the controllers under test read and
// write, and those that the workload creates. Kinds with a row in the registry come first.
func (s *Scenario) ObservedKinds() []kube.Kind {
	always, _ := kube.ControllersNamed() // the default names are known
	observed := kube.Observed(append(always, s.Controllers()...))
	created := s.GenericKinds()
	var all []kube.Kind
	for _, row := range kube.Kinds {
		if containsKind(observed, row) || containsKind(created, row) {
			all = append(all, row)
		}
	}
	for _, kind := range created {
		if !containsKind(all, kind) {
			all = append(all, kind)
		}
	}
	return all
}

func containsKind(in []kube.Kind, kind kube.Kind) bool {
	return slices.ContainsFunc(in, func(k kube.Kind) bool { return k.GVR == kind.GVR })
}

// Resources returns the resources that the faults and triggers of the scenario may name.
// These are the resources of the registry and of the generic kinds of the workload.
func (s *Scenario) Resources() []string { return withResources(s.GenericKinds()) }

func withResources(of []kube.Kind) []string {
	all := kube.Resources()
	for _, kind := range of {
		all = append(all, kind.Resource())
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// NeedsOwnControlPlane returns an error if the workload creates a cluster-scoped object.
// Such a scenario must not run on a cluster that exists without the run, because the
// object is not in the namespace of the run. The error has the position of the create.
func (s *Scenario) NeedsOwnControlPlane() error {
	for i := range s.Workload {
		create, ok := s.Workload[i].Operation.(*Create)
		if ok && create.Kind.IsGeneric() && s.describe(create).ClusterScoped {
			return s.Errorf(stepPath(i)+".create.kind",
				"found %s, which is cluster-scoped; expected a namespaced kind, or a provider with a control plane of its own", create.Kind)
		}
	}
	return nil
}

// isKubernetesVersion reports whether an apiVersion such as apps/v1 belongs to Kubernetes
// itself, so that its kinds are known.
func isKubernetesVersion(kind kube.Kind) bool {
	return scheme.Scheme.IsVersionRegistered(kind.GVR.GroupVersion())
}
