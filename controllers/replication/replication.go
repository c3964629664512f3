// Package replication adapts the sync loop of package replicaset to ReplicationControllers. The
// package only reads ReplicationControllers and writes their status. The sync loop does the rest.
//
// A ReplicationController differs from a ReplicaSet in three points:
//
//   - The selector compares labels by equality only.
//   - The status has no terminatingReplicas.
//   - A sync of a ReplicaSet does nothing while the caches lack the controller's own
//     writes. For a ReplicationController, this rule applies only after unmet
//     expectations have expired.
package replication

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/controllers/replicaset"
)

// replicationControllers implements [replicaset.Kind]: it reads and writes
// ReplicationControllers.
type replicationControllers struct {
	client   kubernetes.Interface
	informer cache.SharedIndexInformer
}

// Controllers returns the implementation of [replicaset.Kind] for ReplicationControllers. The
// implementation reads them from the informer, and writes their status through the client.
func Controllers(client kubernetes.Interface, informer coreinformers.ReplicationControllerInformer) replicaset.Kind {
	return &replicationControllers{client: client, informer: informer.Informer()}
}

// Properties returns the properties in which ReplicationControllers differ from ReplicaSets, such
// as the resource name. It implements [replicaset.Kind].
func (*replicationControllers) Properties() replicaset.Properties {
	return replicaset.Properties{
		GVK:         corev1.SchemeGroupVersion.WithKind("ReplicationController"),
		Resource:    "replicationcontrollers",
		Queue:       "replicationmanager",
		EventSource: "replication-controller",
	}
}

// Informer returns the shared informer of ReplicationControllers. It implements
// [replicaset.Kind].
func (k *replicationControllers) Informer() cache.SharedIndexInformer { return k.informer }

// Owner converts a *ReplicationController to an Owner. It implements [replicaset.Kind].
func (*replicationControllers) Owner(object any) (replicaset.Owner, error) {
	rc, ok := object.(*corev1.ReplicationController)
	if !ok {
		return replicaset.Owner{}, fmt.Errorf("found an object of type %T in the informer of ReplicationControllers; expected a ReplicationController", object)
	}
	if rc.Spec.Template == nil {
		return replicaset.Owner{}, fmt.Errorf("ReplicationController %s/%s has no spec.template", rc.Namespace, rc.Name)
	}
	selector := labels.Nothing()
	if len(rc.Spec.Selector) > 0 {
		selector = labels.ValidatedSetSelector(rc.Spec.Selector)
	}
	owner := replicaset.Owner{
		Object:   rc,
		Replicas: int(ptr.Deref(rc.Spec.Replicas, 1)),
		MinReady: time.Duration(rc.Spec.MinReadySeconds) * time.Second,
		Selector: selector,
		Template: rc.Spec.Template,
		Status: replicaset.Status{
			Replicas:           rc.Status.Replicas,
			FullyLabeled:       rc.Status.FullyLabeledReplicas,
			Ready:              rc.Status.ReadyReplicas,
			Available:          rc.Status.AvailableReplicas,
			ObservedGeneration: rc.Status.ObservedGeneration,
		},
	}
	for _, c := range rc.Status.Conditions {
		owner.Status.Conditions = append(owner.Status.Conditions, replicaset.Condition{
			Type: string(c.Type), Status: c.Status,
			LastTransitionTime: c.LastTransitionTime, Reason: c.Reason, Message: c.Message,
		})
	}
	return owner, nil
}

// Live reads a ReplicationController from the API server. It implements [replicaset.Kind].
func (k *replicationControllers) Live(ctx context.Context, namespace, name string) (replicaset.Owner, error) {
	rc, err := k.client.CoreV1().ReplicationControllers(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return replicaset.Owner{}, err
	}
	return k.Owner(rc)
}

// UpdateStatus writes the status of a ReplicationController, and returns the new resourceVersion.
// It implements [replicaset.Kind].
func (k *replicationControllers) UpdateStatus(ctx context.Context, owner replicaset.Owner, status replicaset.Status) (string, error) {
	rc := *owner.Object.(*corev1.ReplicationController)
	rc.Status = corev1.ReplicationControllerStatus{
		Replicas:             status.Replicas,
		FullyLabeledReplicas: status.FullyLabeled,
		ReadyReplicas:        status.Ready,
		AvailableReplicas:    status.Available,
		ObservedGeneration:   status.ObservedGeneration,
	}
	for _, c := range status.Conditions {
		rc.Status.Conditions = append(rc.Status.Conditions, corev1.ReplicationControllerCondition{
			Type: corev1.ReplicationControllerConditionType(c.Type), Status: c.Status,
			LastTransitionTime: c.LastTransitionTime, Reason: c.Reason, Message: c.Message,
		})
	}
	written, err := k.client.CoreV1().ReplicationControllers(rc.Namespace).UpdateStatus(ctx, &rc, metav1.UpdateOptions{})
	if err != nil {
		return "", err
	}
	return written.ResourceVersion, nil
}

// Siblings implements [replicaset.Kind]. It returns nil, because no object controls a
// ReplicationController.
func (*replicationControllers) Siblings(replicaset.Owner) ([]types.UID, error) { return nil, nil }
