package subject

import (
	"context"
	"errors"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-gauntlet/gauntlet/controllers/rbac"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// managerRole is the name of kube-controller-manager's default ClusterRole, which includes the
// permissions for leader election. Kubernetes has a further default ClusterRole for each
// controller.
const managerRole = "system:kube-controller-manager"

// Grant gives a user or ServiceAccount the RBAC permissions that the controllers need. The argument
// account is that user or ServiceAccount. Nil controllers mean [kube.DefaultControllers].
//
//   - The target [Ours] gets the roles of its own manifests. Its permissions for the Lease are
//     limited to the argument leaseNamespace.
//   - A target from [Operator] gets all permissions if its definition contains no role binding.
//     Otherwise Grant does nothing.
//   - A target go:PATH gets all permissions.
//   - All other targets get the default ClusterRoles that Kubernetes has for the controllers.
func Grant(ctx context.Context, admin kubernetes.Interface, target Target, controllers []kube.Controller, account rbacv1.Subject, leaseNamespace string) error {
	if d := target.definition; target.ownLease() {
		if d != nil && !d.GrantsAll() {
			return nil
		}
		return bindClusterRole(ctx, admin, "cluster-admin", account)
	}
	if target != Ours {
		all := []error{bindClusterRole(ctx, admin, managerRole, account)}
		for _, c := range kube.OrDefault(controllers) {
			all = append(all, bindClusterRole(ctx, admin, c.ClusterRole, account))
		}
		return errors.Join(all...)
	}
	role, election, err := rbac.Roles(leaseNamespace, leaseName)
	if err != nil {
		return err
	}
	role.Labels = grantedLabels
	if _, err := admin.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); ignoreExists(err) != nil {
		return fmt.Errorf("creating ClusterRole %s: %w", role.Name, err)
	}
	if _, err := admin.RbacV1().Roles(leaseNamespace).Create(ctx, election, metav1.CreateOptions{}); ignoreExists(err) != nil {
		return fmt.Errorf("creating Role %s/%s: %w", leaseNamespace, election.Name, err)
	}
	return errors.Join(
		bindClusterRole(ctx, admin, role.Name, account),
		bindRole(ctx, admin, leaseNamespace, election.Name, account),
	)
}

// grantedLabels mark the ClusterRoles and ClusterRoleBindings that Grant creates. By these
// labels, Revoke finds and deletes them.
var grantedLabels = map[string]string{"gauntlet.subject": "granted"}

// Revoke deletes the ClusterRoles and ClusterRoleBindings that [Grant] has created.
//
// Revoke does not delete the Role and the RoleBinding in the Lease's namespace, because the caller
// deletes this namespace.
func Revoke(ctx context.Context, admin kubernetes.Interface) error {
	made := metav1.ListOptions{LabelSelector: labels.FormatLabels(grantedLabels)}
	var now metav1.DeleteOptions
	return errors.Join(
		admin.RbacV1().ClusterRoleBindings().DeleteCollection(ctx, now, made),
		admin.RbacV1().ClusterRoles().DeleteCollection(ctx, now, made),
	)
}

// bindClusterRole creates a ClusterRoleBinding that grants the named ClusterRole to the given
// account. If the ClusterRoleBinding exists, bindClusterRole leaves it unchanged.
func bindClusterRole(ctx context.Context, admin kubernetes.Interface, role string, account rbacv1.Subject) error {
	_, err := admin.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: bindingName(role), Labels: grantedLabels},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{account},
	}, metav1.CreateOptions{})
	if ignoreExists(err) != nil {
		return fmt.Errorf("binding ClusterRole %s: %w", role, err)
	}
	return nil
}

// bindRole creates a RoleBinding that grants the named Role of the namespace to the given account.
// If the RoleBinding exists, bindRole leaves it unchanged.
func bindRole(ctx context.Context, admin kubernetes.Interface, namespace, role string, account rbacv1.Subject) error {
	_, err := admin.RbacV1().RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: bindingName(role)},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
		Subjects:   []rbacv1.Subject{account},
	}, metav1.CreateOptions{})
	if ignoreExists(err) != nil {
		return fmt.Errorf("binding Role %s/%s: %w", namespace, role, err)
	}
	return nil
}

// bindingName returns the name of a role's RoleBinding or ClusterRoleBinding, such as
// gauntlet-subject:cluster-admin.
func bindingName(role string) string { return "gauntlet-subject:" + role }

// User returns the user [cluster.SubjectUser] in the form that role bindings need. Replicas that
// run as local processes authenticate as this user.
func User() rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: cluster.SubjectUser}
}

// ignoreExists returns nil for an AlreadyExists error, and err for all other errors. Roles and
// bindings exist already if another program under test ran on this cluster earlier.
func ignoreExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
