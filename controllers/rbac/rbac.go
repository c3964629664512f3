// Package rbac embeds the RBAC objects that workload-controller-manager needs, as a manifest. The
// function Roles returns only the roles, for a user or service account of the caller's choice.
package rbac

import (
	"bytes"
	_ "embed"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// Manifest is the content of rbac.yaml: roles, role bindings and the service account.
//
//go:embed rbac.yaml
var Manifest []byte

// Roles returns the ClusterRole of the controllers and the Role for leader election, without role
// bindings. The Role is in the namespace leaseNamespace. It permits gets and updates only of the
// Lease with the name leaseName. It permits creates of every Lease, because RBAC cannot restrict a
// create to a name.
func Roles(leaseNamespace, leaseName string) (*rbacv1.ClusterRole, *rbacv1.Role, error) {
	var controllers rbacv1.ClusterRole
	var lease rbacv1.Role
	for kind, into := range map[string]any{"ClusterRole": &controllers, "Role": &lease} {
		if err := decode(kind, into); err != nil {
			return nil, nil, err
		}
	}
	lease.Namespace = leaseNamespace
	for i := range lease.Rules {
		if len(lease.Rules[i].ResourceNames) > 0 {
			lease.Rules[i].ResourceNames = []string{leaseName}
		}
	}
	return &controllers, &lease, nil
}

// decode decodes the first YAML document in Manifest whose kind is the argument kind. It stores
// the result in the variable to which the argument into points.
func decode(kind string, into any) error {
	for document := range bytes.SplitSeq(Manifest, []byte("\n---\n")) {
		var header struct {
			Kind string `json:"kind"`
		}
		if err := yaml.Unmarshal(document, &header); err != nil {
			return fmt.Errorf("reading rbac.yaml: %w", err)
		}
		if header.Kind == kind {
			if err := yaml.UnmarshalStrict(document, into); err != nil {
				return fmt.Errorf("reading the %s of rbac.yaml: %w", kind, err)
			}
			return nil
		}
	}
	return fmt.Errorf("found no %s in rbac.yaml; expected one", kind)
}
