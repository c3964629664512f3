package subject

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kube-gauntlet/gauntlet/controllers/rbac"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

// upstreamRoles are the roles that every API server brings along for
// kube-controller-manager and for its four controllers.
var upstreamRoles = []string{
	"system:kube-controller-manager",
	"system:controller:replication-controller",
	"system:controller:replicaset-controller",
	"system:controller:deployment-controller",
	"system:controller:endpoint-controller",
}

// grant binds to the subject's user the rights its controllers need, and no
// more: for ours the manifest that ours is shipped with, for anything else the
// roles of the upstream controllers.
func grant(ctx context.Context, admin kubernetes.Interface, target Target) error {
	if target == Ours {
		return grantManifest(ctx, admin, rbac.Manifest)
	}
	for _, role := range upstreamRoles {
		if err := bindClusterRole(ctx, admin, role); err != nil {
			return err
		}
	}
	return nil
}

// grantManifest creates the roles of a manifest and binds them.
func grantManifest(ctx context.Context, admin kubernetes.Interface, manifest []byte) error {
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifest)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the RBAC manifest: %w", err)
		}
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(document, nil, nil)
		if err != nil {
			return fmt.Errorf("reading the RBAC manifest: %w", err)
		}
		switch role := object.(type) {
		case *rbacv1.ClusterRole:
			_, err = admin.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{})
			err = errors.Join(ignoreExists(err), bindClusterRole(ctx, admin, role.Name))
		case *rbacv1.Role:
			_, err = admin.RbacV1().Roles(role.Namespace).Create(ctx, role, metav1.CreateOptions{})
			err = errors.Join(ignoreExists(err), bindRole(ctx, admin, role.Namespace, role.Name))
		}
		if err != nil {
			return err
		}
	}
}

func bindClusterRole(ctx context.Context, admin kubernetes.Interface, role string) error {
	_, err := admin.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: bindingName(role)},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   subjects(),
	}, metav1.CreateOptions{})
	if ignoreExists(err) != nil {
		return fmt.Errorf("binding ClusterRole %s: %w", role, err)
	}
	return nil
}

func bindRole(ctx context.Context, admin kubernetes.Interface, namespace, role string) error {
	_, err := admin.RbacV1().RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: bindingName(role)},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
		Subjects:   subjects(),
	}, metav1.CreateOptions{})
	if ignoreExists(err) != nil {
		return fmt.Errorf("binding Role %s/%s: %w", namespace, role, err)
	}
	return nil
}

func bindingName(role string) string { return "gauntlet-subject:" + role }

func subjects() []rbacv1.Subject {
	return []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: cluster.SubjectUser}}
}

// ignoreExists: a cluster that had a subject before has its roles already.
func ignoreExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
