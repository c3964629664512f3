package scenario

import (
	"slices"
	"strings"

	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// Kind is the kind of an object of the workload. For the kinds below, the operation create has
// fields such as replicas. Every other kind, such as StatefulSet, is generic: a create step
// needs a manifest of the object.
type Kind string

// These kinds need no manifest: a create step describes the object by fields such as replicas.
const (
	ReplicaSet            Kind = kube.ReplicaSet
	ReplicationController Kind = kube.ReplicationController
	Deployment            Kind = kube.Deployment
	Pod                   Kind = kube.Pod
	Service               Kind = kube.Service
	Endpoints             Kind = kube.Endpoints
)

// kindRow describes how a workload can use objects of a kind. The table operations says which
// operations support the kind.
type kindRow struct {
	kind Kind
	// fields are the fields of the operation create for the kind, besides kind and name.
	fields []string
	// untils are the conditions of one word, such as ready, that an await of the kind may have.
	// Every kind also supports conditions on fields, such as condition=Ready; see
	// [Until.FieldCondition].
	untils []Until
}

// kinds is the table of the kinds that need no manifest. All other kinds, such as StatefulSet, are
// generic.
var kinds = []kindRow{
	{ReplicaSet, append(slices.Clip(ownerFields), "matchExpressions"), ownerUntils},
	{ReplicationController, ownerFields, ownerUntils},
	{
		Deployment,
		append(slices.Clip(ownerFields), "matchExpressions", "version", "strategy", "maxSurge", "maxUnavailable",
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

// genericRow describes every kind that needs a manifest, such as StatefulSet.
var genericRow = kindRow{fields: []string{"apiVersion", "manifest"}, untils: []Until{Gone}}

var (
	// ownerFields are the fields of the operation create for a kind with replicas. ownerUntils are
	// the conditions of an await for such a kind.
	ownerFields = []string{"replicas", "labels", "selector", "minReadySeconds"}
	ownerUntils = []Until{Scaled, Ready, Available, Gone}

	allKinds = kindsWith("")         // all kinds that are not generic
	owners   = kindsWith("replicas") // kinds with replicas, a selector and a pod template
)

// kindsWith returns the kinds for which the operation create has the given field, such as
// "replicas". If field is "", it returns all kinds in the table kinds.
func kindsWith(field string) []Kind {
	var with []Kind
	for _, row := range kinds {
		if field == "" || slices.Contains(row.fields, field) {
			with = append(with, row.kind)
		}
	}
	return with
}

// row returns the row of the kind in the table kinds. For a kind that is not in the table, which
// needs a manifest, it returns genericRow.
func (k Kind) row() kindRow {
	for _, row := range kinds {
		if row.kind == k {
			return row
		}
	}
	return genericRow
}

// IsGeneric reports whether a create step describes objects of the kind by a manifest, as for
// StatefulSet. It returns false for kinds such as Deployment, which a step describes by fields
// such as replicas.
func (k Kind) IsGeneric() bool { return !slices.Contains(allKinds, k) }

// owner reports whether objects of the kind have spec.replicas and own pods. Such kinds are, for
// example, ReplicaSet and Deployment.
func (k Kind) owner() bool { return slices.Contains(owners, k) }

// makesPods reports whether objects of the kind are pods or create pods. For such kinds, the
// field labels of a create step has the labels of the pods. For other kinds, it has the labels
// of the object itself.
func (k Kind) makesPods() bool { return k.owner() || k == Pod }

// GenericKinds returns the kinds that the scenario uses and that need a manifest in a create
// step. The kinds of the field operator come first. The other kinds that the workload creates
// follow, in the order of the steps.
//
// The plural name and the scope of a created kind come from its CustomResourceDefinition, if the
// workload creates one. Otherwise they come from [kube.Generic].
func (s *Scenario) GenericKinds() []kube.Kind {
	var found []kube.Kind
	if s.Operator != nil {
		for _, kind := range s.Operator.Kinds {
			found = append(found, kind.kubeKind())
		}
	}
	for _, create := range s.creates() {
		if create.Kind != "" && create.Kind.IsGeneric() && !hasKind(found, create.Kind) {
			found = append(found, s.kubeKind(create))
		}
	}
	return found
}

// creates returns the create operations among the steps of the workload, in the order of the steps.
func (s *Scenario) creates() []*Create { return createsOf(s.Workload) }

// createsOf returns the create operations among steps, in the order of the steps.
func createsOf(steps []Step) []*Create {
	var all []*Create
	for i := range steps {
		if create, ok := steps[i].Operation.(*Create); ok {
			all = append(all, create)
		}
	}
	return all
}

// hasKind reports whether a list contains a kind with the given name, in any API group.
func hasKind(in []kube.Kind, kind Kind) bool {
	return slices.ContainsFunc(in, func(k kube.Kind) bool { return k.Name == string(kind) })
}

// CheckDefined returns an error if the workload creates a custom resource, but no
// CustomResourceDefinition. It is for runs in a new cluster, of a subject that creates none either.
func (s *Scenario) CheckDefined() error {
	if s.ExternalWorkload != nil || slices.ContainsFunc(append(s.creates(), s.userCreates()...), func(c *Create) bool { return c.Kind == "CustomResourceDefinition" }) {
		return nil
	}
	for i := range s.Workload {
		create, ok := s.Workload[i].Operation.(*Create)
		if !ok || !create.Kind.IsGeneric() {
			continue
		}
		// All groups of Kubernetes either have no dot or end with .k8s.io.
		if group := create.kubeKind().GVR.Group; strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io") {
			return s.Errorf(stepPath(i)+".create.kind", "found the kind %s of the group %s, but no CustomResourceDefinition; expected the subject file of an operator, such as my-operator.yaml, as the subject under test", create.Kind, group)
		}
	}
	return nil
}

// kubeKind returns the API group, version, resource and scope of the objects that a create step
// with a manifest creates.
//
// The resource and the scope come from the field operator, or from a CustomResourceDefinition that
// the workload creates. Otherwise gauntlet derives them from the name of the kind.
func (s *Scenario) kubeKind(create *Create) kube.Kind {
	kind := create.kubeKind()
	if s.Operator != nil {
		for _, known := range s.Operator.Kinds {
			if known := known.kubeKind(); known.GVK() == kind.GVK() {
				return known
			}
		}
	}
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

// kubeKind returns the API group, version, resource and scope of the objects that the create
// operation creates. It ignores the CustomResourceDefinitions of the workload, and derives the
// resource from the kind's name.
func (c *Create) kubeKind() kube.Kind {
	if row, ok := kube.Named(string(c.Kind)); ok && c.APIVersion == "" {
		return row
	}
	return kube.Generic(kube.SplitGVK(c.APIVersion, string(c.Kind)))
}

// Controllers returns the controllers under test. It returns nil if subject.controllers has an
// unknown name, which [Parse] rejects.
func (s *Scenario) Controllers() []kube.Controller {
	if s.Operator != nil && len(s.Operator.Controllers) > 0 {
		var external []kube.Controller
		for _, c := range s.Operator.Controllers {
			external = append(external, c.kubeController())
		}
		return external
	}
	controllers, err := kube.ControllersNamed(s.Subject.Controllers...)
	if err != nil {
		return nil
	}
	return controllers
}

// ObservedKinds returns the kinds of the objects whose changes a run of the scenario records.
//
// The observed kinds are those that the workload creates, and those that the default controllers
// and the controllers under test read or write. The kinds of [kube.Kinds] come first, in the
// order of that table.
func (s *Scenario) ObservedKinds() []kube.Kind {
	always, _ := kube.ControllersNamed() // without names, ControllersNamed returns the default controllers and no error
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

// containsKind reports whether a list has the kind, compared by group, version and resource.
func containsKind(in []kube.Kind, kind kube.Kind) bool {
	return slices.ContainsFunc(in, func(k kube.Kind) bool { return k.GVR == kind.GVR })
}

// Resources returns the resources that the scenario's faults and triggers may name, such as
// pods. These are the resources of [kube.Resources], and those of the scenario's generic kinds; see
// [Scenario.GenericKinds].
func (s *Scenario) Resources() []string { return withResources(s.GenericKinds()) }

// withResources returns the resources of [kube.Resources] and the resources of the given kinds,
// sorted and without repetitions.
func withResources(of []kube.Kind) []string {
	return resourcesOf(slices.Concat(kube.Kinds, of))
}

// resourcesOf returns the resources of kinds, such as pods for Pod, sorted and without
// repetitions.
func resourcesOf(of []kube.Kind) []string {
	var all []string
	for _, kind := range of {
		all = append(all, kind.Resource())
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// NeedsOwnControlPlane returns an error if the workload creates a cluster-scoped object, and nil
// otherwise. The error has the position of the field kind in the create step.
//
// A scenario with a cluster-scoped object must not run on an existing cluster. After the run,
// gauntlet deletes only the namespace of the run, so the cluster-scoped object would remain.
func (s *Scenario) NeedsOwnControlPlane() error {
	for i := range s.Workload {
		create, ok := s.Workload[i].Operation.(*Create)
		if ok && create.Kind.IsGeneric() && s.kubeKind(create).ClusterScoped {
			return s.Errorf(stepPath(i)+".create.kind",
				"found %s, which is cluster-scoped; expected a namespaced kind, or a provider with a control plane of its own", create.Kind)
		}
	}
	return nil
}

// CheckKinds calls a function for the kind of each object that the workload creates. If the function
// returns an error, CheckKinds returns this error, with the position of the field kind in the create
// step.
func (s *Scenario) CheckKinds(check func(kube.Kind) error) error {
	for i := range s.Workload {
		create, ok := s.Workload[i].Operation.(*Create)
		if !ok || create.Kind == "" {
			continue
		}
		if err := check(s.kubeKind(create)); err != nil {
			return s.Errorf(stepPath(i)+".create.kind", "%w", err)
		}
	}
	return nil
}

// isKubernetesVersion reports whether the API group and version of a kind, such as apps/v1, are
// built into Kubernetes. gauntlet knows all built-in kinds. An unknown kind with such a group
// and version is therefore an error.
func isKubernetesVersion(kind kube.Kind) bool {
	return scheme.Scheme.IsVersionRegistered(kind.GVR.GroupVersion())
}
