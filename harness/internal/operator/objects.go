package operator

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// installed lists the kinds of objects that a run creates before the program starts. A run does not
// create the objects of any other kind in the manifests.
var installed = []string{
	"Namespace", "CustomResourceDefinition", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding",
	"ConfigMap", "Secret", "PriorityClass",
}

// objects contains what a run needs from the manifests of a subject file, such as the objects that
// it creates.
type objects struct {
	process
	install []*unstructured.Unstructured
	kinds   []scenario.ExternalKind // kinds that the CustomResourceDefinitions define
	rules   []rbacv1.PolicyRule     // of the roles that the role bindings name
	ignored []string                // kinds
}

// sort returns what a run needs from the given manifests. It returns an error if it cannot decode
// one of the objects.
func sort(manifests []*unstructured.Unstructured) (*objects, error) {
	sorted := &objects{}
	bound := boundRoles(manifests)
	for _, o := range manifests {
		if err := sorted.add(o, bound); err != nil {
			return nil, fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return sorted, nil
}

// add adds an object of the manifests. The argument bound contains the roles to which role
// bindings refer.
func (s *objects) add(o *unstructured.Unstructured, bound map[string]bool) error {
	switch kind := o.GetKind(); {
	case kind == "Deployment" && s.process.env == nil:
		var err error
		s.process, err = processOf(o)
		return err
	case kind == "CustomResourceDefinition":
		defined, err := kindOf(o)
		if err != nil {
			return err
		}
		s.kinds = append(s.kinds, defined)
		o = o.DeepCopy()
		if strategy, _, _ := unstructured.NestedString(o.Object, "spec", "conversion", "strategy"); strategy == "Webhook" {
			unstructured.RemoveNestedField(o.Object, "spec", "conversion")
			s.ignored = append(s.ignored, "conversion webhook")
		}
	case kind == "ClusterRole" || kind == "Role":
		var role rbacv1.ClusterRole // a Role has the same rules
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
			return err
		}
		if bound[kind+"/"+o.GetName()] {
			s.rules = append(s.rules, role.Rules...)
		}
	case !slices.Contains(installed, kind):
		s.ignored = append(s.ignored, kind)
		return nil
	}
	s.install = append(s.install, o)
	return nil
}

// boundRoles returns the roles that the role bindings name, such as "ClusterRole/manager".
func boundRoles(manifests []*unstructured.Unstructured) map[string]bool {
	bound := map[string]bool{}
	for _, o := range manifests {
		kind, _, _ := unstructured.NestedString(o.Object, "roleRef", "kind")
		name, _, _ := unstructured.NestedString(o.Object, "roleRef", "name")
		bound[kind+"/"+name] = true
	}
	return bound
}

// kindOf returns the kind that a CustomResourceDefinition defines, with its stored version.
func kindOf(definition *unstructured.Unstructured) (scenario.ExternalKind, error) {
	spec := func(fields ...string) string {
		value, _, _ := unstructured.NestedString(definition.Object, append([]string{"spec"}, fields...)...)
		return value
	}
	kind := scenario.ExternalKind{Kind: spec("names", "kind"), Plural: spec("names", "plural"), ClusterScoped: spec("scope") == "Cluster"}
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, version := range versions {
		if fields, ok := version.(map[string]any); ok && fields["storage"] == true {
			kind.APIVersion = fmt.Sprintf("%s/%s", spec("group"), fields["name"])
		}
	}
	if kind.APIVersion == "" || kind.Kind == "" || kind.Plural == "" {
		return kind, fmt.Errorf("found kind %q, plural %q and stored version %q; expected spec.names.kind, spec.names.plural and a version with storage: true", kind.Kind, kind.Plural, kind.APIVersion)
	}
	return kind, nil
}

// operator returns the controllers and kinds of a program, from its subject file and its
// manifests.
//
// If the file names no controllers, each namespaced kind of the CustomResourceDefinitions has one.
// Each of these controllers writes its own kind and all kinds that the roles allow to write.
func (s *objects) operator(found *scenario.Operator) scenario.Operator {
	var o scenario.Operator
	if found != nil {
		o = *found
	}
	written := s.written()
	for _, kind := range slices.Concat(s.kinds, written) {
		same := func(k scenario.ExternalKind) bool { return k.Kind == kind.Kind }
		if _, known := kube.Named(kind.Kind); !known && !slices.ContainsFunc(o.Kinds, same) {
			o.Kinds = append(o.Kinds, kind)
		}
	}
	if len(o.Controllers) > 0 {
		return o
	}
	var writes []string
	for _, kind := range written {
		writes = append(writes, kind.Kind)
	}
	for _, kind := range s.kinds {
		if kind.ClusterScoped {
			continue // a run records the objects of one namespace
		}
		o.Controllers = append(o.Controllers, scenario.ExternalController{
			Name: strings.ToLower(kind.Kind), Kind: kind.Kind, Watches: []string{kind.Kind}, Writes: withKind(writes, kind.Kind),
		})
	}
	return o
}

// withKind returns kinds with another kind at the end, unless kinds contains it.
func withKind(kinds []string, kind string) []string {
	if slices.Contains(kinds, kind) {
		return kinds
	}
	return append(slices.Clip(kinds), kind)
}

// writeVerbs are the verbs that change objects.
var writeVerbs = []string{"create", "update", "patch", "delete", "deletecollection", rbacv1.VerbAll}

// notWorkload lists resources that almost every program may write, whatever it manages.
var notWorkload = []string{"events", "events.events.k8s.io", "leases.coordination.k8s.io"}

// written returns the namespaced kinds that the roles allow the program to write, sorted by name. It
// knows the kinds of Kubernetes and of the CustomResourceDefinitions.
func (s *objects) written() []scenario.ExternalKind {
	var kinds []scenario.ExternalKind
	for _, rule := range s.rules {
		if !slices.ContainsFunc(rule.Verbs, func(verb string) bool { return slices.Contains(writeVerbs, verb) }) {
			continue
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				resource = strings.TrimSuffix(resource, "/status")
				if kind, ok := s.kindOfResource(group, resource); ok && !slices.Contains(kinds, kind) {
					kinds = append(kinds, kind)
				}
			}
		}
	}
	slices.SortFunc(kinds, func(a, b scenario.ExternalKind) int { return cmp.Compare(a.Kind, b.Kind) })
	return kinds
}

// kindOfResource returns the namespaced kind with the given API group and plural name.
func (s *objects) kindOfResource(group, resource string) (scenario.ExternalKind, bool) {
	for _, kind := range s.kinds {
		if strings.HasPrefix(kind.APIVersion, group+"/") && kind.Plural == resource {
			return kind, !kind.ClusterScoped
		}
	}
	kind, ok := kube.BuiltinByResource(group, resource)
	if !ok || kind.ClusterScoped || slices.Contains(notWorkload, kind.Resource()) {
		return scenario.ExternalKind{}, false
	}
	return scenario.ExternalKind{APIVersion: kind.APIVersion(), Kind: kind.Name, Plural: kind.GVR.Resource}, true
}
