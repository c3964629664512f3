package operator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/nearest"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

// installed lists the kinds whose objects a run creates before the program starts. The objects come
// from the manifests. A run uses objects of two other kinds in another way:
//
//   - The first Deployment says how gauntlet runs the program as a local process.
//   - For a Service to which a webhook refers, a run creates a Service of the type ExternalName.
//
// A run ignores objects of all other kinds, all other Deployments, and all other Services.
var installed = []string{
	"Namespace", "CustomResourceDefinition", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding",
	"ConfigMap", "Secret", "PriorityClass", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration",
}

// objects contains what a run needs from the manifests of a subject file. A subject file describes
// a program under test in YAML.
type objects struct {
	process                              // how the first Deployment runs the program
	install []*unstructured.Unstructured // objects that a run creates before the program starts
	kinds   []scenario.ExternalKind      // kinds that the CustomResourceDefinitions define
	mutated []admissionv1.Rule           // rules of mutating webhooks, which may complete objects
	rules   []rbacv1.PolicyRule          // rules of all roles that a role binding names
	// otherRules is true if a role binding names a role that the manifests lack, such as cluster-admin.
	otherRules bool
	places     map[string]string // file and line of each object, by its subject.ObjectKey
	ignored    []string          // kinds whose objects a run does not create
	// incomplete has texts about mistakes in objects that do not change a run; see the function incomplete.
	incomplete []string
	// services are the Services in the manifests. If a webhook refers to a Service, a run creates a
	// Service of the same name with the type ExternalName. It creates no other Services.
	services []*unstructured.Unstructured
}

// sort reads the manifests of a subject file, which describes a program under test. It returns what
// a run needs from them, and an error if a manifest is not valid for its kind.
func sort(ctx context.Context, manifests []manifest) (*objects, error) {
	sorted := &objects{places: map[string]string{}, mutated: mutatedBy(manifests)}
	roles := map[string]bool{}
	for _, o := range manifests {
		if o.GetName() == "" && o.GetGenerateName() == "" {
			return nil, o.mistake(withoutName(o.Unstructured))
		}
	}
	bound, err := boundRoles(manifests)
	if err != nil {
		return nil, err
	}
	for _, o := range manifests {
		roles[o.GetKind()+"/"+o.GetName()] = true
	}
	for role := range bound {
		sorted.otherRules = sorted.otherRules || role != "/" && !roles[role]
	}
	if err := checkRoleRefs(manifests); err != nil {
		return nil, err
	}
	for _, o := range manifests {
		key := subject.ObjectKey(o.Unstructured)
		if first, twice := sorted.places[key]; twice && o.GetName() != "" {
			return nil, o.mistake(fmt.Errorf("found %s %s twice; expected each object once; the first is in %s", o.GetKind(), o.GetName(), first))
		}
		sorted.places[key] = o.place
		sorted.incomplete = append(sorted.incomplete, o.notes...)
		sorted.note(o, incomplete(o.Unstructured))
		if err := sorted.add(ctx, o, bound); err != nil {
			return nil, o.named(err)
		}
	}
	for _, o := range manifests {
		sorted.note(o, sorted.checkCustomKind(o.Unstructured))
		sorted.note(o, sorted.checkReferences(o.Unstructured, manifests))
		if err := sorted.checkWebhookResources(o.Unstructured); err != nil {
			sorted.note(o, fmt.Errorf("%w; API servers accept this value, but the webhook gets no requests for it", err))
		}
		if err := sorted.checkCustomResources(o.Unstructured); err != nil {
			sorted.note(o, fmt.Errorf("%w%s", err, permitsNothing))
		}
	}
	return sorted, nil
}

// note adds a mistake in an object that does not change a run, or nothing if the error is nil.
func (s *objects) note(o manifest, err error) {
	if err != nil {
		s.incomplete = append(s.incomplete, o.named(err).Error())
	}
}

// withoutName returns an error about an object without a name. The name may be missing, or be no text.
func withoutName(o *unstructured.Unstructured) error {
	metadata, ok := o.Object["metadata"].(map[string]any)
	if !ok && o.Object["metadata"] != nil {
		return fmt.Errorf("%s: metadata: found %s; expected an object with a name", o.GetKind(), found(o.Object["metadata"]))
	}
	if name := metadata["name"]; name != nil && name != "" {
		return fmt.Errorf("%s: metadata.name: found %.60v; expected a text (quote a value such as 7 or true)", o.GetKind(), name)
	}
	article := "a"
	if strings.ContainsAny(o.GetKind()[:min(1, len(o.GetKind()))], "AEIO") {
		article = "an"
	}
	return fmt.Errorf("found %s %s without metadata.name; expected a name", article, o.GetKind())
}

// bindsOtherAccounts reports whether the manifests have ServiceAccounts, but none to which a role binding grants
// its role. A run nevertheless binds the role to the account of the program.
func bindsOtherAccounts(binding manifest, manifests []manifest) bool {
	var accounts []string
	for _, o := range manifests {
		if o.GetKind() == "ServiceAccount" {
			accounts = append(accounts, o.GetName())
		}
	}
	subjects, _, _ := unstructured.NestedSlice(binding.Object, "subjects")
	return len(accounts) > 0 && len(subjects) > 0 && !slices.ContainsFunc(subjects, func(s any) bool {
		fields, _ := s.(map[string]any)
		name, _ := fields["name"].(string)
		return slices.Contains(accounts, name)
	})
}

// add adds one object of the manifests to the fields of s. For an object that a run does not use,
// it adds only the kind of the object to s.ignored. It uses the rules of a role only if a role
// binding names the role. The keys of the map bound are these roles, such as "ClusterRole/manager".
func (s *objects) add(ctx context.Context, m manifest, bound map[string]bool) error {
	o := m.Unstructured
	switch kind := o.GetKind(); {
	case kind == "Deployment" && !s.found:
		var err error
		s.process, err = processOf(o)
		s.deployment = fmt.Sprintf("%s: Deployment %s", m.place, o.GetName())
		return err
	case kind == "CustomResourceDefinition":
		defined, err := s.kindOf(ctx, o)
		if err != nil {
			return err
		}
		s.kinds = append(s.kinds, defined)
	case kind == "ClusterRole" || kind == "Role":
		var role rbacv1.ClusterRole // a Role has the same rules
		if err := decode(o, &role); err != nil {
			return err
		}
		if bound[kind+"/"+o.GetName()] {
			s.rules = append(s.rules, role.Rules...)
		}
	case kind == "Service":
		s.services = append(s.services, o)
		return nil
	case !slices.Contains(installed, kind):
		s.ignored = append(s.ignored, kind)
		return nil
	}
	s.install = append(s.install, o)
	return nil
}

// boundRoles returns the roles that role bindings in the manifests name, and the cluster roles that
// these roles aggregate. Only these roles say what the program may write. The keys have the form
// "ClusterRole/manager".
func boundRoles(manifests []manifest) (map[string]bool, error) {
	bound := map[string]bool{}
	for _, o := range manifests {
		kind, _, _ := unstructured.NestedString(o.Object, "roleRef", "kind")
		name, _, _ := unstructured.NestedString(o.Object, "roleRef", "name")
		bound[kind+"/"+name] = true
	}
	for _, o := range manifests {
		if o.GetKind() != "ClusterRole" || !bound["ClusterRole/"+o.GetName()] {
			continue
		}
		if err := addAggregated(bound, o.Unstructured, manifests); err != nil {
			return nil, o.named(err)
		}
	}
	return bound, nil
}

// defaultRoles lists roles that each cluster has, apart from those whose names begin with "system:". The Role
// extension-apiserver-authentication-reader is in the namespace kube-system.
var defaultRoles = []string{"cluster-admin", "admin", "edit", "view", "extension-apiserver-authentication-reader"}

// checkRoleRefs returns an error if a role binding names a role that neither the manifests nor a new
// cluster contains. The API server accepts such a role binding, but it permits nothing. checkRoleRefs ignores
// role bindings for ServiceAccounts of other programs, such as Prometheus.
func checkRoleRefs(manifests []manifest) error {
	for _, o := range manifests {
		if o.GroupVersionKind().Group != rbacv1.GroupName || !strings.HasSuffix(o.GetKind(), "RoleBinding") || bindsOtherAccounts(o, manifests) {
			continue
		}
		kind, _, _ := unstructured.NestedString(o.Object, "roleRef", "kind")
		name, _, _ := unstructured.NestedString(o.Object, "roleRef", "name")
		if kind != "Role" && kind != "ClusterRole" || strings.HasPrefix(name, "system:") || slices.Contains(defaultRoles, name) {
			continue
		}
		var names []string
		for _, role := range manifests {
			inside := kind == "ClusterRole" || role.GetNamespace() == o.GetNamespace() || role.GetNamespace() == "" || o.GetNamespace() == ""
			if role.GetKind() == kind && inside {
				names = append(names, role.GetName())
			}
		}
		if !slices.Contains(names, name) {
			expected := "a ClusterRole of subject.manifests, or a default one such as cluster-admin"
			if kind == "Role" {
				expected = "a Role of subject.manifests in the namespace of the RoleBinding"
			}
			return o.named(fmt.Errorf("roleRef.name: found %.80q; expected %s%s", name, expected, nearest.Suggestion(name, names)))
		}
	}
	return nil
}

// addAggregated adds the cluster roles that an aggregationRule selects to the map bound.
func addAggregated(bound map[string]bool, aggregate *unstructured.Unstructured, manifests []manifest) error {
	var role rbacv1.ClusterRole
	if err := decode(aggregate, &role); err != nil {
		return err
	}
	if role.AggregationRule == nil {
		return nil
	}
	for i := range role.AggregationRule.ClusterRoleSelectors {
		selector, err := metav1.LabelSelectorAsSelector(&role.AggregationRule.ClusterRoleSelectors[i])
		if err != nil {
			return err
		}
		for _, o := range manifests {
			if o.GetKind() == "ClusterRole" && selector.Matches(labels.Set(o.GetLabels())) {
				bound["ClusterRole/"+o.GetName()] = true
			}
		}
	}
	return nil
}

// operator returns a description of the controllers and kinds of the program under test. The
// argument found is the section "operator" of the subject file, or nil. The result has the content
// of this section, and kinds and controllers that only the manifests name.
//
// If the section names no controllers, each namespaced kind of the CustomResourceDefinitions gets
// one controller. This controller may write its own kind, and all kinds for which the roles permit
// writes. A kind with the name of another kind in [kube.Kinds] gets none, because scenarios do not
// support it.
func (s *objects) operator(found *scenario.Operator) scenario.Operator {
	var o scenario.Operator
	if found != nil {
		o = *found
	}
	written := s.written()
	for _, kind := range slices.Concat(s.kinds, written) {
		i := slices.IndexFunc(o.Kinds, func(k scenario.ExternalKind) bool { return k.Kind == kind.Kind })
		switch _, known := kube.Named(kind.Kind); {
		case i >= 0 && o.Kinds[i].APIVersion == kind.APIVersion:
			o.Kinds = slices.Clone(o.Kinds)
			o.Kinds[i].CopySchema(kind)
		case i < 0 && !known:
			o.Kinds = append(slices.Clip(o.Kinds), kind)
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
		if other, known := kube.Named(kind.Kind); kind.ClusterScoped || known && other.APIVersion() != kind.APIVersion {
			continue // only namespaced kinds get a controller
		}
		o.Controllers = append(o.Controllers, scenario.ExternalController{
			Name: strings.ToLower(kind.Kind), Kind: kind.Kind, Watches: []string{kind.Kind}, Writes: withKind(writes, kind.Kind),
		})
	}
	return o
}

// checkNamesakes returns an error if two definitions have the same kind, because operator would give both
// the same controller. The section found of the subject file may list other controllers instead.
func (s *objects) checkNamesakes(found *scenario.Operator) error {
	if found != nil && len(found.Controllers) > 0 {
		return nil
	}
	first := map[string]string{}
	for _, kind := range s.kinds {
		group, _, _ := strings.Cut(kind.APIVersion, "/")
		name := kind.Plural + "." + group
		if _, known := kube.Named(kind.Kind); known || kind.ClusterScoped {
			continue // the kind gets no controller
		}
		if first[kind.Kind] != "" {
			return fmt.Errorf("found the kind %s in the CustomResourceDefinitions %s and %s; expected one of them, or the controllers in the section operator of the subject file", kind.Kind, first[kind.Kind], name)
		}
		first[kind.Kind] = name
	}
	return nil
}

// checkListed returns an error if a kind in operator.kinds of the subject file differs from its
// CustomResourceDefinition. It also returns the path of the wrong field.
func (s *objects) checkListed(found *scenario.Operator) (path string, err error) {
	if found == nil {
		return "", nil
	}
	for i, listed := range found.Kinds {
		j := slices.IndexFunc(s.kinds, func(k scenario.ExternalKind) bool { return k.Kind == listed.Kind && k.APIVersion == listed.APIVersion })
		if versions := s.versionsOfKind(listed); j < 0 && len(versions) > 0 && !slices.Contains(versions, listed.APIVersion) {
			return fmt.Sprintf("operator.kinds[%d].apiVersion", i), fmt.Errorf("found %.80q; expected %s, as in the CustomResourceDefinition of %s", listed.APIVersion, nearest.List(versions, "or"), listed.Kind)
		}
		if j < 0 {
			continue
		}
		at := fmt.Sprintf("operator.kinds[%d]", i)
		switch defined := s.kinds[j]; {
		case listed.Plural != "" && listed.Plural != defined.Plural:
			return at + ".plural", fmt.Errorf("found %.80q; expected %s, as in the CustomResourceDefinition of %s", listed.Plural, defined.Plural, listed.Kind)
		case listed.ClusterScoped && !defined.ClusterScoped:
			return at + ".clusterScoped", fmt.Errorf("found true, but the CustomResourceDefinition of %s has the scope Namespaced; remove the field", listed.Kind)
		}
	}
	return "", nil
}

// versionsOfKind returns the values of apiVersion that a CustomResourceDefinition with the kind and group of a listed kind
// has.
func (s *objects) versionsOfKind(listed scenario.ExternalKind) []string {
	var versions []string
	group, _, _ := strings.Cut(listed.APIVersion, "/")
	for _, o := range s.install {
		var d definition
		if !isDefinition(o) || decode(o, &d) != nil || d.Spec.Group != group || d.Spec.Names.Kind != listed.Kind {
			continue
		}
		for _, version := range d.Spec.Versions {
			versions = append(versions, group+"/"+version.Name)
		}
	}
	return versions
}

// withKind returns a list of kinds with one more kind, unless the list already contains this kind.
func withKind(kinds []string, kind string) []string {
	if slices.Contains(kinds, kind) {
		return kinds
	}
	return append(slices.Clip(kinds), kind)
}

// writeVerbs has the verbs of RBAC rules that allow changes of objects.
var writeVerbs = []string{"create", "update", "patch", "delete", "deletecollection", rbacv1.VerbAll}

// notWorkload lists resources that almost every controller writes. A role that allows such writes
// does not show which objects the controller manages.
var notWorkload = []string{"events", "events.events.k8s.io", "leases.coordination.k8s.io"}

// written returns the namespaced kinds that the program may write, sorted by name. The rules in
// s.rules, which come from the program's roles, say what it may write. written returns only
// built-in kinds of Kubernetes and kinds of the CustomResourceDefinitions. It returns each name of a
// kind once, even if two API groups have it.
func (s *objects) written() []scenario.ExternalKind {
	var kinds []scenario.ExternalKind
	for _, rule := range s.rules {
		if !slices.ContainsFunc(rule.Verbs, func(verb string) bool { return slices.Contains(writeVerbs, verb) }) {
			continue
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				resource = strings.TrimSuffix(resource, "/status")
				if kind, ok := s.kindOfResource(group, resource); ok && !slices.ContainsFunc(kinds, func(other scenario.ExternalKind) bool { return other.Kind == kind.Kind }) {
					kinds = append(kinds, kind)
				}
			}
		}
	}
	slices.SortFunc(kinds, func(a, b scenario.ExternalKind) int { return cmp.Compare(a.Kind, b.Kind) })
	return kinds
}

// kindOfResource returns the kind of a resource that appears in a role, such as "deployments" of
// group "apps". It returns false for an unknown kind, for a cluster-scoped kind, and for a resource
// in notWorkload.
func (s *objects) kindOfResource(group, resource string) (scenario.ExternalKind, bool) {
	for _, kind := range s.kinds {
		if strings.HasPrefix(kind.APIVersion, group+"/") && kind.Plural == resource {
			return kind, !kind.ClusterScoped
		}
	}
	if group == "extensions" { // roles for old clusters name it; no API server since Kubernetes 1.22 serves it
		return scenario.ExternalKind{}, false
	}
	kind, ok := kube.BuiltinByResource(group, resource)
	if !ok || kind.ClusterScoped || slices.Contains(notWorkload, kind.Resource()) {
		return scenario.ExternalKind{}, false
	}
	return scenario.ExternalKind{APIVersion: kind.APIVersion(), Kind: kind.Name, Plural: kind.GVR.Resource}, true
}
