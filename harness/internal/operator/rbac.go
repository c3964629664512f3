package operator

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/nearest"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// resourceVerbs has the verbs with which the API server checks requests for resources.
var resourceVerbs = []string{
	"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", rbacv1.VerbAll,
	"use", "bind", "escalate", "impersonate", "approve", "sign", "attest", "proxy",
}

// methodVerbs has the verbs of rules for URLs. They are the methods of HTTP, and verbs that roles often list beside
// them.
var methodVerbs = []string{"get", "post", "put", "patch", "delete", "head", "options", rbacv1.VerbAll, "list", "watch", "create", "update"}

// permitsNothing ends the notes about rules of roles that have no effect.
const permitsNothing = "; API servers accept this value, but it permits nothing"

// checkRule returns an error about a rule of a role that the API server refuses.
func checkRule(at string, rule *rbacv1.PolicyRule) error {
	switch forURLs := len(rule.NonResourceURLs) > 0; {
	case len(rule.Verbs) == 0:
		return wrong(at+".verbs", nil, "at least one verb such as get")
	case forURLs && len(rule.APIGroups)+len(rule.Resources) > 0:
		return fmt.Errorf("%s: found resources and nonResourceURLs; expected one of them in a rule", at)
	case forURLs:
	case len(rule.APIGroups) == 0:
		return wrong(at+".apiGroups", nil, `at least one group such as apps, or "" for the kinds of the version v1`)
	case len(rule.Resources) == 0:
		return wrong(at+".resources", nil, "at least one resource such as pods, or nonResourceURLs")
	}
	return nil
}

// checkRuleNames returns an error about a misspelled name in a rule of a role. The API server accepts such a rule, but
// the name permits nothing.
func checkRuleNames(at string, rule *rbacv1.PolicyRule) error {
	verbs := resourceVerbs
	if len(rule.NonResourceURLs) > 0 {
		verbs = methodVerbs
	}
	for i, url := range rule.NonResourceURLs {
		if url != rbacv1.NonResourceAll && !strings.HasPrefix(url, "/") {
			return wrong(fmt.Sprintf("%s.nonResourceURLs[%d]", at, i), url, "a path that begins with /, or *")
		}
	}
	for i, verb := range rule.Verbs {
		if verb == "" {
			return wrong(fmt.Sprintf("%s.verbs[%d]", at, i), nil, "a verb such as get")
		}
		if strings.ContainsAny(verb, ", ") {
			return wrong(fmt.Sprintf("%s.verbs[%d]", at, i), verb, "one verb in each item")
		}
		if other := otherVerbs[verb]; other != "" && onlyBuiltin(rule.APIGroups) && !slices.Contains(verbs, verb) {
			return wrong(fmt.Sprintf("%s.verbs[%d]", at, i), verb, "a verb such as "+nearest.List(verbs[:8], "or")+"; did you mean "+other+"?")
		}
		if similar := nearest.Suggestion(verb, verbs); !slices.Contains(verbs, verb) && similar != "" {
			return wrong(fmt.Sprintf("%s.verbs[%d]", at, i), verb, "a verb such as "+nearest.List(verbs[:8], "or")+similar)
		}
	}
	for i, group := range rule.APIGroups {
		if err := checkGroup(fmt.Sprintf("%s.apiGroups[%d]", at, i), group); err != nil {
			return err
		}
	}
	if err := checkResourceForm(at, rule); err != nil {
		return err
	}
	return checkResourceNames(at, rule)
}

// ruleSubresources has the subresources of custom resources, and the name after which owner references are checked.
var ruleSubresources = []string{"status", "scale", "finalizers"}

// checkResourceForm returns an error about a resource of a rule with a group, or with a misspelled subresource.
func checkResourceForm(at string, rule *rbacv1.PolicyRule) error {
	for i, resource := range rule.Resources {
		at := fmt.Sprintf("%s.resources[%d]", at, i)
		name, part, _ := strings.Cut(resource, "/")
		if plural, group, dotted := strings.Cut(name, "."); dotted {
			return wrong(at, resource, fmt.Sprintf("%s, with the group %s in apiGroups", plural, group))
		}
		if slices.Contains(rule.APIGroups, rbacv1.APIGroupAll) || slices.ContainsFunc(rule.APIGroups, isBuiltin) {
			continue // built-in kinds have more subresources
		}
		if similar := nearest.Suggestion(part, ruleSubresources); similar != "" && !slices.Contains(ruleSubresources, part) {
			return wrong(at, resource, "a resource, or a subresource such as "+name+"/status"+similar)
		}
	}
	return nil
}

// isBuiltin reports whether an API group has built-in kinds.
func isBuiltin(group string) bool { return len(scheme.Scheme.PrioritizedVersionsForGroup(group)) > 0 }

// onlyBuiltin reports whether all API groups have built-in kinds. The authorizers of other groups may know any verb.
func onlyBuiltin(groups []string) bool {
	return !slices.ContainsFunc(groups, func(group string) bool { return !isBuiltin(group) })
}

// otherVerbs has words that users take for verbs, and the verbs that they mean.
var otherVerbs = map[string]string{
	"read": "get", "view": "get", "write": "update", "edit": "update", "modify": "update", "post": "create", "put": "update", "add": "create", "remove": "delete", "all": "*",
}

// checkGroup returns an error about an API group in a rule. Groups without a dot are built in.
func checkGroup(at, group string) error {
	builtin := []string{rbacv1.APIGroupAll, "extensions"}
	for _, version := range scheme.Scheme.PrioritizedVersionsAllGroups() {
		if !strings.Contains(version.Group, ".") {
			builtin = append(builtin, version.Group)
		}
	}
	before, version, versioned := strings.Cut(group, "/")
	switch {
	case versioned:
		return wrong(at, group, fmt.Sprintf("a group without the version %s: %q", version, before))
	case group == "core" || group == "v1":
		return wrong(at, group, `"", which is the group of kinds such as Pod`)
	case !strings.Contains(group, ".") && !slices.Contains(builtin, group):
		return wrong(at, group, "a group such as apps or example.com"+nearest.Suggestion(group, builtin))
	}
	return nil
}

// checkResourceNames returns an error about a misspelled resource of a rule, if all its groups are built in. It knows
// also resources that only older API servers serve.
func checkResourceNames(at string, rule *rbacv1.PolicyRule) error {
	if slices.Contains(rule.Verbs, "impersonate") {
		return nil // the resources are those of users
	}
	var known []string
	for _, group := range rule.APIGroups {
		versions := scheme.Scheme.PrioritizedVersionsForGroup(group)
		if len(versions) == 0 || group == "extensions" {
			return nil
		}
		for _, version := range versions {
			kinds := scheme.Scheme.KnownTypes(version)
			for kind := range kinds {
				if _, listed := kinds[kind+"List"]; listed {
					plural, _ := meta.UnsafeGuessKindToResource(version.WithKind(kind))
					known = append(known, plural.Resource)
				}
			}
		}
	}
	slices.Sort(known)
	for i, resource := range rule.Resources {
		name, part, _ := strings.Cut(resource, "/")
		if !slices.Contains(append(ruleSubresources, ""), part) {
			continue // such as namespace/metrics, which an authorizer outside of Kubernetes checks
		}
		builtin := slices.ContainsFunc(rule.APIGroups, func(group string) bool {
			_, ok := kube.BuiltinByResource(group, name)
			return ok
		})
		if builtin || slices.Contains(known, name) {
			continue
		}
		at := fmt.Sprintf("%s.resources[%d]", at, i)
		if similar := nearest.Suggestion(name, known); similar != "" {
			return wrong(at, resource, "a resource of the apiGroups in lower case and plural"+similar)
		}
		for _, group := range []string{"", "apps", "batch", "autoscaling", "policy"} {
			if _, ok := kube.BuiltinByResource(group, name); ok {
				return wrong(at, resource, fmt.Sprintf("a resource of the apiGroups; the group of %s is %q", name, group))
			}
		}
	}
	return nil
}

// checkCustomResources returns an error if a role names a custom kind in place of the plural of its resource.
func (s *objects) checkCustomResources(role *unstructured.Unstructured) error {
	var r rbacv1.ClusterRole // a Role has the same rules
	if !strings.HasSuffix(role.GetKind(), "Role") || decode(role, &r) != nil {
		return nil
	}
	for i, rule := range r.Rules {
		for j, resource := range rule.Resources {
			for _, kind := range s.kinds {
				name, _, _ := strings.Cut(resource, "/")
				group, _, _ := strings.Cut(kind.APIVersion, "/")
				if slices.Contains(rule.APIGroups, group) && name != kind.Plural && strings.EqualFold(name, kind.Kind) {
					return wrong(fmt.Sprintf("rules[%d].resources[%d]", i, j), resource, "the plural "+kind.Plural+" of the CustomResourceDefinition")
				}
			}
		}
	}
	return nil
}

// checkCustomKind returns an error if the kind of an object is similar to one of a CustomResourceDefinition. Both have
// the same API group.
func (s *objects) checkCustomKind(o *unstructured.Unstructured) error {
	var kinds []string
	for _, kind := range s.kinds {
		if group, _, _ := strings.Cut(kind.APIVersion, "/"); group == o.GroupVersionKind().Group {
			kinds = append(kinds, kind.Kind)
		}
	}
	if versions := s.versionsOfKind(scenario.ExternalKind{APIVersion: o.GetAPIVersion(), Kind: o.GetKind()}); len(versions) > 0 && !slices.Contains(versions, o.GetAPIVersion()) {
		return wrong("apiVersion", o.GetAPIVersion(), nearest.List(versions, "or")+", as in the CustomResourceDefinition")
	}
	similar := nearest.Name(o.GetKind(), kinds)
	if slices.Contains(kinds, o.GetKind()) || similar == "" || strings.Contains(similar, o.GetKind()) || strings.Contains(o.GetKind(), similar) {
		return nil
	}
	return wrong("kind", o.GetKind(), "a kind of a CustomResourceDefinition; did you mean "+similar+"?")
}

// checkRole returns an error if a Role has a rule for URLs, which only a ClusterRole may have.
func checkRole(_ string, role *rbacv1.Role) error {
	for i, rule := range role.Rules {
		if len(rule.NonResourceURLs) > 0 {
			return fmt.Errorf("rules[%d].nonResourceURLs: found URLs in a Role; expected a ClusterRole for them", i)
		}
	}
	return nil
}

func checkRoleBinding(_ string, b *rbacv1.RoleBinding) error {
	return checkRoleRef(b.RoleRef, "ClusterRole", "Role")
}

func checkClusterRoleBinding(_ string, b *rbacv1.ClusterRoleBinding) error {
	return checkRoleRef(b.RoleRef, "ClusterRole")
}

// checkRoleRef returns an error about the reference to the role of a role binding.
func checkRoleRef(ref rbacv1.RoleRef, kinds ...string) error {
	switch {
	case ref.Kind == "" && ref.Name == "":
		return wrong("roleRef", nil, "the kind and the name of a role")
	case !slices.Contains(kinds, ref.Kind):
		return wrong("roleRef.kind", ref.Kind, oneOf(kinds, ref.Kind))
	case ref.Name == "":
		return wrong("roleRef.name", nil, "the name of a "+ref.Kind)
	case ref.APIGroup != "" && ref.APIGroup != rbacv1.GroupName:
		return wrong("roleRef.apiGroup", ref.APIGroup, rbacv1.GroupName)
	}
	return nil
}

// checkSubject returns an error about an account, user or group to which a role binding grants its role.
func checkSubject(at string, s *rbacv1.Subject) error {
	kinds := []string{rbacv1.ServiceAccountKind, rbacv1.UserKind, rbacv1.GroupKind}
	group := rbacv1.GroupName
	if s.Kind == rbacv1.ServiceAccountKind {
		group = ""
	}
	switch {
	case !slices.Contains(kinds, s.Kind):
		return wrong(at+".kind", s.Kind, oneOf(kinds, s.Kind))
	case s.Name == "":
		return wrong(at+".name", nil, "the name of a "+s.Kind)
	case s.APIGroup != "" && s.APIGroup != group:
		return wrong(at+".apiGroup", s.APIGroup, fmt.Sprintf("%q for a %s", group, s.Kind))
	}
	return nil
}

// unreadable returns a text for each kind of a controller that no bound role permits to list and watch. The kinds are
// that which the controller reconciles, and those in watches. Without bound roles, a run permits everything.
func (s *objects) unreadable(described scenario.Operator) []string {
	if len(s.rules) == 0 || s.otherRules {
		return nil
	}
	var notes []string
	for _, c := range described.Controllers {
		use := "reconciles"
		for i, kind := range append([]string{c.Kind}, c.Watches...) {
			if i > 0 {
				use = "watches"
			}
			group, plural := s.resourceOf(described, kind)
			if i > 0 && kind == c.Kind || plural == "" {
				continue
			}
			missing := slices.DeleteFunc([]string{"list", "watch"}, func(verb string) bool {
				return slices.ContainsFunc(s.rules, func(rule rbacv1.PolicyRule) bool {
					return containsOrAll(rule.Verbs, verb) && containsOrAll(rule.APIGroups, group) && containsOrAll(rule.Resources, plural)
				})
			})
			if len(missing) > 0 {
				notes = append(notes, fmt.Sprintf("the controller %s: found no bound role that permits it to %s %s; expected this permission for the kind that it %s",
					c.Name, nearest.List(missing, "and"), strings.TrimSuffix(plural+"."+group, "."), use))
			}
		}
	}
	return notes
}

// resourceOf returns the group and the plural of a kind. The plural is empty for a kind that neither the manifests nor
// the subject file define, and that is not built in.
func (s *objects) resourceOf(described scenario.Operator, kind string) (group, plural string) {
	isKind := func(k scenario.ExternalKind) bool { return k.Kind == kind }
	for _, kinds := range [][]scenario.ExternalKind{s.kinds, described.Kinds} {
		if i := slices.IndexFunc(kinds, isKind); i >= 0 && strings.Contains(kinds[i].APIVersion, "/") {
			group, _, _ = strings.Cut(kinds[i].APIVersion, "/")
			return group, kinds[i].Plural
		}
	}
	known, _ := kube.Named(kind)
	return known.GVR.Group, known.GVR.Resource
}

// containsOrAll reports whether a list of a rule contains a value, or * for all values.
func containsOrAll(list []string, value string) bool {
	return slices.Contains(list, value) || slices.Contains(list, rbacv1.VerbAll)
}
