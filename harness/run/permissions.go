package run

import (
	"regexp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

// requestVerbs are the RBAC verbs that can be the verb of a recorded request. unusedPermissions
// ignores other verbs, such as escalate, because a history does not show whether they were needed.
var requestVerbs = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", rbacv1.VerbAll}

// grantedRules returns the RBAC rules of a program under test that has a subject file. These are
// the rules of the roles that the role bindings in its manifests name. The result is nil if d is
// nil, or if there is no role binding. Without a role binding, the program has all permissions.
func grantedRules(d *subject.Definition) []rbacv1.PolicyRule {
	if d == nil {
		return nil
	}
	bound := map[string]bool{}
	for _, o := range d.Objects {
		if reference, ok := o.Object["roleRef"].(map[string]any); ok {
			kind, _ := reference["kind"].(string)
			name, _ := reference["name"].(string)
			bound[kind+"/"+name] = true
		}
	}
	var rules []rbacv1.PolicyRule
	for _, o := range d.Objects {
		var role rbacv1.ClusterRole // also for a Role, which has the same field rules
		if !bound[o.GetKind()+"/"+o.GetName()] || runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role) != nil {
			continue
		}
		rules = append(rules, role.Rules...)
	}
	return rules
}

// permission is what one RBAC rule allows for one verb and one resource. Each field may be "*".
// Reports list permissions that no request of a run needed.
type permission struct{ verb, group, resource string }

// String returns the permission as text, such as "update deployments.apps/status".
func (p permission) String() string {
	resource, subresource, ok := strings.Cut(p.resource, "/")
	if p.group != "" {
		resource += "." + p.group
	}
	if ok {
		resource += "/" + subresource
	}
	return p.verb + " " + resource
}

// allows reports whether the permission p allows a request. The argument needed is the permission
// that this request needs.
func (p permission) allows(needed permission) bool {
	matches := func(pattern, text string) bool {
		expression := strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*")
		return pattern == text || strings.Contains(pattern, "*") && regexp.MustCompile("^"+expression+"$").MatchString(text)
	}
	return matches(p.verb, needed.verb) && matches(p.group, needed.group) && matches(p.resource, needed.resource)
}

// neededBy returns the RBAC permission that the sender of a recorded request needs for this
// request.
func neededBy(r *history.Request) permission {
	resource, group, _ := strings.Cut(r.Resource, ".")
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	return permission{r.Verb, group, resource}
}

// unusedPermissions returns, as sorted texts, the permissions in rules that no request of the run
// needed. The keys of the map used are the permissions that the requests needed. unusedPermissions
// ignores names of objects in a rule.
func unusedPermissions(rules []rbacv1.PolicyRule, used map[permission]bool) []string {
	var unused []string
	for _, rule := range rules {
		for _, verb := range rule.Verbs {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					granted := permission{verb, group, resource}
					if slices.Contains(requestVerbs, verb) && !granted.usedBy(used) {
						unused = append(unused, granted.String())
					}
				}
			}
		}
	}
	slices.Sort(unused)
	return slices.Compact(unused)
}

// usedBy reports whether the permission p allows at least one request of the run. The keys of the
// map used are the permissions that the requests needed.
func (p permission) usedBy(used map[permission]bool) bool {
	for needed := range used {
		if p.allows(needed) {
			return true
		}
	}
	return false
}
