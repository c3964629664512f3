package rbac

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
)

func TestRoles(t *testing.T) {
	controllers, lease, err := Roles("leases", "mine")
	if err != nil {
		t.Fatal(err)
	}
	if controllers.Name != "workload-controller-manager" || len(controllers.Rules) == 0 {
		t.Errorf("ClusterRole %q has %d rules", controllers.Name, len(controllers.Rules))
	}
	for _, rule := range append(controllers.Rules, lease.Rules...) {
		for _, granted := range [][]string{rule.APIGroups, rule.Resources, rule.Verbs} {
			for _, name := range granted {
				if name == "*" {
					t.Errorf("a rule grants everything: %v", rule)
				}
			}
		}
	}
	want := []rbacv1.PolicyRule{
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create"}},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{"mine"}, Verbs: []string{"get", "update"}},
	}
	if diff := cmp.Diff(want, lease.Rules); diff != "" {
		t.Errorf("rules of the lease (-want +got):\n%s", diff)
	}
	if lease.Namespace != "leases" {
		t.Errorf("the lease's role is in namespace %q, want leases", lease.Namespace)
	}
}
