package run

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

func TestUnusedPermissions(t *testing.T) {
	used := map[permission]bool{}
	for _, r := range []history.Request{
		{Verb: "get", Resource: "pods"}, {Verb: "update", Resource: "widgets.example.com", Subresource: "status"}, {Verb: "create", Resource: "jobs.batch"},
	} {
		used[neededBy(&r)] = true
	}
	for _, test := range []struct {
		name string
		rule rbacv1.PolicyRule
		want []string
	}{
		{"used", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}, nil},
		{"unused verbs", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"watch", "get", "list"}}, []string{"list pods", "watch pods"}},
		{"subresource", rbacv1.PolicyRule{APIGroups: []string{"example.com"}, Resources: []string{"widgets", "widgets/status"}, Verbs: []string{"update"}}, []string{"update widgets.example.com"}},
		{"another group", rbacv1.PolicyRule{APIGroups: []string{"", "batch"}, Resources: []string{"jobs"}, Verbs: []string{"create"}}, []string{"create jobs"}},
		{"used wildcards", rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}, nil},
		{"used wildcard of subresources", rbacv1.PolicyRule{APIGroups: []string{"example.com"}, Resources: []string{"*/status"}, Verbs: []string{"*"}}, nil},
		{"unused wildcard", rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"*"}, Verbs: []string{"*"}}, []string{"* *.apps"}},
		{"verb without requests", rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"x"}, Verbs: []string{"escalate"}}, nil},
		{"URL", rbacv1.PolicyRule{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}, nil},
	} {
		if diff := cmp.Diff(test.want, unusedPermissions([]rbacv1.PolicyRule{test.rule}, used)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func TestGrantedRules(t *testing.T) {
	if rules := grantedRules(nil); rules != nil {
		t.Errorf("found the rules %v without a definition", rules)
	}
	d := &subject.Definition{}
	for _, text := range []string{
		`{kind: ClusterRole, metadata: {name: manager}, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}`,
		`{kind: ClusterRole, metadata: {name: unbound}, rules: [{apiGroups: [""], resources: [secrets], verbs: [get]}]}`,
		`{kind: Role, metadata: {name: manager}, rules: [{apiGroups: [""], resources: [nodes], verbs: [get]}]}`,
		`{kind: ClusterRoleBinding, metadata: {name: b}, roleRef: {kind: ClusterRole, name: manager}}`,
	} {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
			t.Fatal(err)
		}
		d.Objects = append(d.Objects, o)
	}
	want := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}}
	if diff := cmp.Diff(want, grantedRules(d)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
