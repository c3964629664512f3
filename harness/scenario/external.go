package scenario

import (
	"fmt"
	"slices"

	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// ExternalWorkload describes a workload that a Go program executes. A scenario with an external
// workload has no steps, and the command gauntlet run rejects it.
type ExternalWorkload struct {
	// Pods is the maximum number of pods that the workload requests at one time.
	Pods int `yaml:"pods,omitempty" bounds:"0..20000"`
}

// Operator describes controllers under test that are not controllers of Kubernetes, and their
// custom resources. If a subject file names the controllers, gauntlet run sets this field from
// that file.
type Operator struct {
	// Kinds is the list of the kinds that gauntlet does not know and that the controllers or the
	// workload use. The command `gauntlet list kinds` prints the known kinds. The run records
	// all objects of the kinds in the list.
	Kinds []ExternalKind `yaml:"kinds,omitempty" bounds:"0..100"`
	// Controllers is the list of the controllers under test. Only the checks that apply to
	// every controller examine these controllers. If the list is empty, the controllers in
	// subject.controllers are under test.
	Controllers []ExternalController `yaml:"controllers,omitempty" bounds:"0..100"`
}

// ExternalController is a controller under test that is not a controller of Kubernetes.
type ExternalController struct {
	// Name is the name of the controller in reports.
	Name string `yaml:"name" format:"name" required:"true"`
	// Kind is the kind of the objects that the controller reconciles, such as Widget.
	Kind string `yaml:"kind" format:"kind" required:"true"`
	// Watches is the list of the kinds whose informer caches must have synced before the
	// controller writes.
	Watches []string `yaml:"watches,omitempty" format:"kinds"`
	// Writes is the list of the kinds that the controller creates, changes or deletes.
	Writes []string `yaml:"writes,omitempty" format:"kinds"`
}

// kubeController converts the controller to a [kube.Controller], the type that checks and the
// recorder use.
func (c ExternalController) kubeController() kube.Controller {
	return kube.Controller{Name: c.Name, Kind: c.Kind, Watches: c.Watches, Writes: c.Writes}
}

// ExternalKind is a kind that gauntlet does not know, such as the kind of a custom resource.
type ExternalKind struct {
	// APIVersion is the group and version of the kind, such as example.com/v1.
	APIVersion string `yaml:"apiVersion" format:"groupVersion" required:"true"`
	// Kind is the name of the kind, such as Widget.
	Kind string `yaml:"kind" format:"kind" required:"true"`
	// Plural is the plural name of the kind in the API, such as widgets. By default, it is the
	// plural of the kind in lower case.
	Plural string `yaml:"plural,omitempty" format:"plural"`
	// ClusterScoped is true if the objects of the kind have no namespace. It has an effect only
	// together with plural.
	ClusterScoped bool `yaml:"clusterScoped,omitempty"`

	schema *kindSchema // see SetSchema; nil if it is not known
}

// New returns a scenario without faults whose workload is executed by a Go program, such as a
// test. All other fields have their defaults. The name must be a DNS label.
func New(name, description string) *Scenario {
	s := &Scenario{Name: name, Description: description, ExternalWorkload: &ExternalWorkload{}}
	s.setDefaults()
	return s
}

// kubeKind returns the API group, version, resource and scope of the kind.
//
// If the field Plural is empty, [kube.Generic] derives the plural name from the kind. The user
// must set Plural if the API has another plural name.
func (k ExternalKind) kubeKind() kube.Kind {
	gvk := kube.SplitGVK(k.APIVersion, k.Kind)
	if k.Plural != "" {
		return kube.CustomResource(gvk, k.Plural, k.ClusterScoped)
	}
	return kube.Generic(gvk)
}

// externalWorkload records an error if a scenario has both an external workload and steps. It
// also records an error if a field of the external workload is out of bounds.
func (v *validator) externalWorkload(external *ExternalWorkload) {
	if external == nil {
		return
	}
	v.check(v.scenario.Workload == nil, "workload", "found the fields workload and externalWorkload; expected only one of the two fields")
	v.bounded("externalWorkload", external)
}

// operator records the errors about the field operator, which describes controllers under test
// that are not part of Kubernetes. A scenario without the field is valid.
func (v *validator) operator(o *Operator) {
	if o == nil {
		return
	}
	v.check(len(o.Kinds) <= externalKindsMax, "operator.kinds", "found %d kinds; expected at most %d", len(o.Kinds), externalKindsMax)
	for i, kind := range o.Kinds {
		v.externalKind(fmt.Sprintf("operator.kinds[%d]", i), kind, o.Kinds[:i])
	}
	v.check(len(o.Controllers) <= externalKindsMax, "operator.controllers", "found %d controllers; expected at most %d", len(o.Controllers), externalKindsMax)
	v.check(len(o.Controllers) == 0 || v.scenario.Subject.Controllers == nil, "subject.controllers",
		"found the field, but operator.controllers or the subject file also lists the controllers under test; expected only one list")
	for i, c := range o.Controllers {
		v.externalController(fmt.Sprintf("operator.controllers[%d]", i), c, o.Controllers[:i])
	}
}

// externalKind records the errors about one kind in the list operator.kinds. The argument before
// has the preceding items of the list, which must not contain the same kind.
func (v *validator) externalKind(path string, kind ExternalKind, before []ExternalKind) {
	v.check(kind.APIVersion != "", path+".apiVersion", "found nothing; expected a group and a version such as apps/v1, or v1")
	v.groupVersion(path+".apiVersion", kind.APIVersion)
	v.kindName(path+".kind", kind.Kind)
	if kind.Plural != "" {
		v.name(path+".plural", kind.Plural)
	}
	v.check(!kind.ClusterScoped || kind.Plural != "", path+".plural", "found nothing; expected the plural of the cluster-scoped kind %s", kind.Kind)
	v.check(!slices.ContainsFunc(before, func(k ExternalKind) bool { return k.Kind == kind.Kind }), path+".kind", "found kind %s twice; expected each kind once", kind.Kind)
	v.check(kind.Plural == "" || !slices.ContainsFunc(before, func(k ExternalKind) bool {
		return k.Plural == kind.Plural && k.APIVersion == kind.APIVersion
	}), path+".plural", "found plural %s twice in %s; expected the plural of kind %s", kind.Plural, kind.APIVersion, kind.Kind)
	if row, ok := kube.Named(kind.Kind); ok {
		v.check(row.APIVersion() == kind.APIVersion, path+".apiVersion", "found %s for kind %s; expected %s", kind.APIVersion, kind.Kind, row.APIVersion())
	}
	v.builtin(path, kind.kubeKind())
	if known := kube.Generic(kind.kubeKind().GVK()); kind.Plural != "" && known.Builtin() {
		v.check(kind.Plural == known.GVR.Resource, path+".plural", "found %.60q; expected %s, the plural of kind %s", kind.Plural, known.GVR.Resource, kind.Kind)
		v.check(kind.ClusterScoped == known.ClusterScoped, path+".clusterScoped", "found %t for kind %s; expected %t", kind.ClusterScoped, kind.Kind, known.ClusterScoped)
	}
}

// externalController records the errors about one controller in the list operator.controllers.
// The argument before has the preceding items of the list, which must not have the same name. All
// kinds that the controller names must be known.
func (v *validator) externalController(path string, c ExternalController, before []ExternalController) {
	v.name(path+".name", c.Name)
	v.check(!slices.ContainsFunc(before, func(other ExternalController) bool { return other.Name == c.Name }), path+".name", "found controller %s twice; expected each controller once", c.Name)
	v.externalKindName(path+".kind", c.Kind)
	for _, field := range []struct {
		name  string
		kinds []string
	}{{"watches", c.Watches}, {"writes", c.Writes}} {
		for i, kind := range field.kinds {
			at := fmt.Sprintf("%s.%s[%d]", path, field.name, i)
			v.externalKindName(at, kind)
			v.check(slices.Index(field.kinds, kind) == i, at, "found kind %s twice; expected each kind once", kind)
		}
	}
}

// externalKindName records an error about the scenario field at path if its value is not the name
// of a kind. The argument found is this value. Valid names are those of Kubernetes kinds that
// `gauntlet list kinds` prints. The kinds in the scenario's list operator.kinds are also valid.
func (v *validator) externalKindName(path, found string) {
	_, known := kube.Named(found)
	known = known || slices.ContainsFunc(v.scenario.Operator.Kinds, func(k ExternalKind) bool { return k.Kind == found })
	known = known || slices.Contains(v.unknown, found) || v.invalid("operator.kinds")
	if !known {
		v.unknown = append(v.unknown, found)
	}
	v.check(known, path, "found %.60q; expected a kind of operator.kinds, %sor one that `gauntlet list kinds` prints%s", found, v.elsewhere, v.similarExternalKind(found))
}

// similarExternalKind returns the suggestion of a known kind whose name is similar.
func (v *validator) similarExternalKind(found string) string {
	if found == "" {
		return ""
	}
	var names []Kind
	for _, kind := range kube.Kinds {
		names = append(names, Kind(kind.Name))
	}
	for _, kind := range v.scenario.Operator.Kinds {
		names = append(names, Kind(kind.Kind))
	}
	return similarKind(found, names)
}
