package operator

import (
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kube-gauntlet/gauntlet/harness/nearest"
)

// checkWebhookRule returns an error about a rule of a webhook. Each list needs a value, and no values beside *.
func checkWebhookRule(at string, rule *admissionv1.RuleWithOperations) error {
	for _, list := range []struct {
		name, expected string
		values         []string
	}{
		{"operations", "a list with CREATE, UPDATE, DELETE, CONNECT or *", texts(rule.Operations...)},
		{"apiGroups", "a list of groups such as example.com", rule.APIGroups},
		{"apiVersions", "a list of versions such as v1", rule.APIVersions},
		{"resources", "a list of resources such as pods", rule.Resources},
	} {
		at := at + "." + list.name
		if len(list.values) == 0 {
			return wrong(at, nil, list.expected)
		}
		if list.name != "resources" && len(list.values) > 1 && slices.Contains(list.values, "*") {
			return wrong(at, list.values, "only *, or a list without *")
		}
		if i := slices.Index(list.values, ""); i >= 0 && list.name != "apiGroups" {
			return wrong(fmt.Sprintf("%s[%d]", at, i), nil, list.expected)
		}
	}
	return checkWildcards(at+".resources", rule.Resources)
}

// checkWildcards returns an error about a resource of a rule if an earlier wildcard in the list matches it, too. API servers
// accept a wildcard after such a resource.
func checkWildcards(at string, resources []string) error {
	if len(resources) > 1 && slices.Contains(resources, "*/*") {
		return wrong(at, resources, "only */*, or a list without it")
	}
	for i, resource := range resources {
		at := fmt.Sprintf("%s[%d]", at, i)
		name, part, isPart := strings.Cut(resource, "/")
		switch {
		case !isPart && resource != "*" && slices.Contains(resources[:i], "*"):
			return wrong(at, resource, "no further resource, because the list has *")
		case isPart && part != "*" && slices.Contains(resources[:i], name+"/*"):
			return wrong(at, resource, fmt.Sprintf("no such subresource, because the list has %s/*", name))
		case isPart && name != "*" && slices.Contains(resources[:i], "*/"+part):
			return wrong(at, resource, fmt.Sprintf("no such resource, because the list has */%s", part))
		}
	}
	return nil
}

// checkWebhookResources returns an error about a resource in a rule of a webhook that no API server has. It knows the
// resources of built-in groups, and of groups in the CustomResourceDefinitions.
func (s *objects) checkWebhookResources(o *unstructured.Unstructured) error {
	var configuration admissionv1.ValidatingWebhookConfiguration // a MutatingWebhookConfiguration has the same rules
	if !strings.HasSuffix(o.GetKind(), "WebhookConfiguration") || decode(withoutBundles(o), &configuration) != nil {
		return nil
	}
	for i, webhook := range configuration.Webhooks {
		for j, rule := range webhook.Rules {
			at := fmt.Sprintf("webhooks[%d].rules[%d]", i, j)
			if err := checkResourceNames(at, &rbacv1.PolicyRule{APIGroups: rule.APIGroups, Resources: rule.Resources}); err != nil {
				return err
			}
			if err := s.checkCustomRule(at, rule.Rule); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkCustomRule returns an error about a rule for custom groups that matches no resource. The groups are those of the
// CustomResourceDefinitions.
func (s *objects) checkCustomRule(at string, rule admissionv1.Rule) error {
	var plurals []string
	matched := false
	for _, group := range rule.APIGroups {
		before := len(plurals)
		for _, kind := range s.kinds {
			if strings.HasPrefix(kind.APIVersion, group+"/") {
				plurals = append(plurals, kind.Plural)
			}
		}
		if len(plurals) == before {
			return nil // another program may define the kinds of this group
		}
	}
	for _, resource := range rule.Resources {
		name, _, _ := strings.Cut(resource, "/")
		matched = matched || name == "*" || slices.Contains(plurals, name)
	}
	if versions := s.versionsOf(rule); matched && len(versions) > 0 && !slices.ContainsFunc(rule.APIVersions, func(v string) bool { return v == "*" || slices.Contains(versions, v) }) {
		return wrong(at+".apiVersions", rule.APIVersions, "a version of the CustomResourceDefinitions: "+nearest.List(versions, "or"))
	}
	if matched {
		return nil
	}
	expected := "a resource of the CustomResourceDefinitions with these apiGroups: " + nearest.List(plurals, "or")
	return wrong(at+".resources", rule.Resources, expected+nearest.Suggestion(rule.Resources[0], plurals))
}

// versionsOf returns the versions of all CustomResourceDefinitions with the groups of a rule.
func (s *objects) versionsOf(rule admissionv1.Rule) []string {
	var versions []string
	for _, o := range s.install {
		var d definition
		if !isDefinition(o) || decode(o, &d) != nil || !slices.Contains(rule.APIGroups, d.Spec.Group) {
			continue
		}
		for _, version := range d.Spec.Versions {
			if !slices.Contains(versions, version.Name) {
				versions = append(versions, version.Name)
			}
		}
	}
	return versions
}
