package environment

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

// installOrder lists the Kinds of objects that install creates first, in this order, because other
// objects depend on them. Objects of all other Kinds follow.
var installOrder = []string{"Namespace", "Service", "CustomResourceDefinition", "ServiceAccount", "ClusterRole", "Role"}

// installLast lists the Kinds of objects that install creates last. As soon as a webhook
// configuration exists, the API server calls the webhook when an object is created. But the
// program that serves the webhook does not run yet.
var installLast = []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}

// install creates the namespace and the objects that a program under test needs, such as
// CustomResourceDefinitions and roles. In role bindings, it replaces the subjects by the argument
// account, the user of the program. install returns when the API server serves the custom
// resources.
func (e *Environment) install(ctx context.Context, namespace string, objects []*unstructured.Unstructured, account rbacv1.Subject) error {
	ctx, cancel := context.WithTimeout(ctx, installTimeout)
	defer cancel()
	if err := e.createNamespace(ctx, namespace); err != nil {
		return err
	}
	objects = slices.Clone(objects)
	rank := func(o *unstructured.Unstructured) int {
		if i := slices.Index(installOrder, o.GetKind()); i >= 0 {
			return i
		}
		return len(installOrder) + 1 + slices.Index(installLast, o.GetKind())
	}
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int { return cmp.Compare(rank(a), rank(b)) })
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(e.Admin.Discovery()))
	for _, o := range objects {
		if err := e.installObject(ctx, mapper, withAccount(o, account), namespace); err != nil {
			return cluster.CreateError(o, err)
		}
	}
	return nil
}

// installObject creates the object o, unless o exists. It first creates the object's namespace if
// necessary. The argument namespace is the namespace of a namespaced object that names no namespace
// itself. For a CustomResourceDefinition, installObject waits until the API server serves the
// custom resources.
func (e *Environment) installObject(ctx context.Context, mapper meta.RESTMapper, o *unstructured.Unstructured, namespace string) error {
	gvk := o.GroupVersionKind()
	mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return err
	}
	resource := e.Dynamic.Resource(mapping.Resource)
	create := resource.Create
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		create = resource.Namespace(cmp.Or(o.GetNamespace(), namespace)).Create
		if err := e.createNamespace(ctx, cmp.Or(o.GetNamespace(), namespace)); err != nil {
			return err
		}
	}
	if _, err := create(ctx, o, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	if gvk.Kind != "CustomResourceDefinition" {
		return nil
	}
	return cluster.AwaitEstablished(ctx, resource, o.GetName())
}

// createNamespace creates the named namespace for objects of the program under test, unless that
// namespace exists.
func (e *Environment) createNamespace(ctx context.Context, name string) error {
	_, err := e.Admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating namespace %s: %w", name, err)
	}
	return nil
}

// withAccount returns a copy of a RoleBinding or ClusterRoleBinding whose only subject is account.
// The program under test, which authenticates as account, then has the role's permissions.
// withAccount returns all other objects unchanged.
func withAccount(o *unstructured.Unstructured, account rbacv1.Subject) *unstructured.Unstructured {
	if o.GroupVersionKind().Group != rbacv1.GroupName || (o.GetKind() != "RoleBinding" && o.GetKind() != "ClusterRoleBinding") {
		return o
	}
	bound := o.DeepCopy()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&account)
	if err != nil {
		panic(err) // impossible: an RBAC subject contains only strings
	}
	bound.Object["subjects"] = []any{fields}
	return bound
}
