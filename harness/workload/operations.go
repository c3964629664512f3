package workload

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// create creates the objects of a create operation. It returns a reference to the created
// object, or nil if the operation creates several pods.
func (u *user) create(ctx context.Context, create *scenario.Create) (*history.Ref, error) {
	var controller *metav1.OwnerReference
	if create.Controller == scenario.ForeignController {
		var err error
		if controller, err = u.foreignController(ctx); err != nil {
			return nil, err
		}
	}
	kind, err := u.kind(create.Kind)
	if err != nil {
		return nil, err
	}
	names := create.Names()
	u.created[create.Target] = names
	var last *history.Ref
	for _, name := range names {
		object, err := u.build(create, kind, name, controller)
		if err != nil {
			return nil, err
		}
		var made metav1.Object
		err = u.retryUnavailable(ctx, func(repeated bool) (err error) {
			made, err = u.createServed(ctx, kind, object)
			if repeated && apierrors.IsAlreadyExists(err) { // an earlier request created the object, but its response was lost: an empty patch returns the object
				made, err = kind.patch(ctx, name, types.MergePatchType, []byte("{}"))
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		if last, err = ref(kind.Resource(), made); err != nil {
			return nil, err
		}
	}
	if len(names) > 1 {
		return nil, nil
	}
	return last, nil
}

// build returns the object with the given name that a create operation creates. The argument
// controller is an owner reference for the object, or nil.
func (u *user) build(create *scenario.Create, of kind, name string, controller *metav1.OwnerReference) (runtime.Object, error) {
	if create.Kind.IsGeneric() {
		return buildGeneric(create, of, name, u.Pods.spec())
	}
	return build(create, name, u.Namespace, controller, u.Pods.spec()), nil
}

// createServed sends a create request, and returns the created object. If the API server does not
// serve the resource yet, createServed repeats the request for up to unservedTimeout.
//
// The API server serves a custom resource only some time after the CustomResourceDefinition has
// the condition Established.
func (u *user) createServed(ctx context.Context, of kind, object runtime.Object) (metav1.Object, error) {
	started := u.Clock.Now()
	for {
		made, err := of.create(ctx, object)
		if !isUnserved(err) || u.Clock.Since(started) >= unservedTimeout {
			return made, err
		}
		if err := u.sleep(ctx, retryInterval); err != nil {
			return nil, err
		}
	}
}

// propagationPolicies has the API's value for each propagation policy of a scenario.
var propagationPolicies = map[scenario.Propagation]metav1.DeletionPropagation{
	scenario.Background: metav1.DeletePropagationBackground,
	scenario.Foreground: metav1.DeletePropagationForeground,
	scenario.Orphan:     metav1.DeletePropagationOrphan,
}

// delete deletes all objects that the target of the operation names. It returns a reference to
// the deleted object, or nil if the target names several objects.
//
// Controllers and faults may also delete pods and Endpoints, so a missing pod or Endpoints object
// is not an error.
func (u *user) delete(ctx context.Context, del *scenario.Delete) (*history.Ref, error) {
	kind, err := u.kind(del.Kind)
	if err != nil {
		return nil, err
	}
	policy := propagationPolicies[del.Propagation]
	names := u.names(del.Target)
	for _, name := range names {
		err := u.retryUnavailable(ctx, func(repeated bool) error {
			err := kind.delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &policy})
			if repeated && apierrors.IsNotFound(err) {
				return nil
			}
			return err
		})
		// The controllers under test also delete pods and Endpoints.
		if err != nil && !((del.Kind == scenario.Pod || del.Kind == scenario.Endpoints) && apierrors.IsNotFound(err)) {
			return nil, err
		}
	}
	if len(names) > 1 {
		return nil, nil
	}
	return &history.Ref{Resource: kind.Resource(), Namespace: kind.namespace, Name: del.Name}, nil
}

// foreign is the name of a ConfigMap to which owner references of pods refer. The controllers
// under test must not change these pods, because another object is their controller.
//
// The ConfigMap must exist. The garbage collector would otherwise delete the pods, because their
// owner would be missing.
const foreign = "foreign"

// foreignController returns an owner reference to the ConfigMap named foreign, with controller:
// true. It creates the ConfigMap if it does not exist.
func (u *user) foreignController(ctx context.Context) (*metav1.OwnerReference, error) {
	maps := u.Client.CoreV1().ConfigMaps(u.Namespace)
	var owner *corev1.ConfigMap
	err := u.retryUnavailable(ctx, func(bool) (err error) {
		owner, err = maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: foreign}}, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			owner, err = maps.Get(ctx, foreign, metav1.GetOptions{})
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("creating ConfigMap %s/%s, to which owner references of pods refer: %w", u.Namespace, foreign, err)
	}
	return metav1.NewControllerRef(owner, corev1.SchemeGroupVersion.WithKind("ConfigMap")), nil
}
