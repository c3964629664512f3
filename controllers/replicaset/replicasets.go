package replicaset

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/controllers/internal/childindex"
	"github.com/kube-gauntlet/gauntlet/controllers/internal/ownership"
)

// replicaSets implements [Kind] for ReplicaSets.
type replicaSets struct {
	client   kubernetes.Interface
	informer cache.SharedIndexInformer
}

// ReplicaSets returns the implementation of [Kind] for ReplicaSets. The implementation reads
// ReplicaSets from the informer, and writes their status through the client. Start the informer
// only after the call.
func ReplicaSets(client kubernetes.Interface, informer appsinformers.ReplicaSetInformer) (Kind, error) {
	if err := childindex.Add(informer.Informer()); err != nil {
		return nil, err
	}
	return &replicaSets{client: client, informer: informer.Informer()}, nil
}

// Properties returns the properties in which ReplicaSets differ from ReplicationControllers, such
// as the resource name. It implements [Kind].
func (*replicaSets) Properties() Properties {
	return Properties{
		GVK:               appsv1.SchemeGroupVersion.WithKind("ReplicaSet"),
		Resource:          "replicasets",
		Queue:             "replicaset",
		EventSource:       "replicaset-controller",
		ReadsOwnWrites:    true,
		CountsTerminating: true,
	}
}

// Informer returns the shared informer of ReplicaSets. It implements [Kind].
func (k *replicaSets) Informer() cache.SharedIndexInformer { return k.informer }

// Owner converts a *ReplicaSet to an Owner. It implements [Kind].
func (*replicaSets) Owner(object any) (Owner, error) {
	set, ok := object.(*appsv1.ReplicaSet)
	if !ok {
		return Owner{}, fmt.Errorf("found an object of type %T in the informer of ReplicaSets; expected a ReplicaSet", object)
	}
	selector, err := ownership.SelectorOf(set.Spec.Selector)
	if err != nil {
		return Owner{}, fmt.Errorf("ReplicaSet %s/%s: %w", set.Namespace, set.Name, err)
	}
	return Owner{
		Object:   set,
		Replicas: int(ptr.Deref(set.Spec.Replicas, 1)),
		MinReady: time.Duration(set.Spec.MinReadySeconds) * time.Second,
		Selector: selector,
		Template: &set.Spec.Template,
		Status: Status{
			Replicas:           set.Status.Replicas,
			FullyLabeled:       set.Status.FullyLabeledReplicas,
			Ready:              set.Status.ReadyReplicas,
			Available:          set.Status.AvailableReplicas,
			Terminating:        set.Status.TerminatingReplicas,
			ObservedGeneration: set.Status.ObservedGeneration,
			Conditions:         conditionsFrom(set.Status.Conditions),
		},
	}, nil
}

// conditionsFrom converts the status conditions of a ReplicaSet to the type Condition, which
// ReplicaSets and ReplicationControllers have in common.
func conditionsFrom(api []appsv1.ReplicaSetCondition) []Condition {
	conditions := make([]Condition, len(api))
	for i, c := range api {
		conditions[i] = Condition{string(c.Type), c.Status, c.LastTransitionTime, c.Reason, c.Message}
	}
	return conditions
}

// Live reads a ReplicaSet from the API server. It implements [Kind].
func (k *replicaSets) Live(ctx context.Context, namespace, name string) (Owner, error) {
	set, err := k.client.AppsV1().ReplicaSets(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return Owner{}, err
	}
	return k.Owner(set)
}

// UpdateStatus writes the status of a ReplicaSet, and returns the new resourceVersion. It
// implements [Kind].
func (k *replicaSets) UpdateStatus(ctx context.Context, owner Owner, status Status) (string, error) {
	set := *owner.Object.(*appsv1.ReplicaSet)
	set.Status = appsv1.ReplicaSetStatus{
		Replicas:             status.Replicas,
		FullyLabeledReplicas: status.FullyLabeled,
		ReadyReplicas:        status.Ready,
		AvailableReplicas:    status.Available,
		TerminatingReplicas:  status.Terminating,
		ObservedGeneration:   status.ObservedGeneration,
	}
	for _, c := range status.Conditions {
		set.Status.Conditions = append(set.Status.Conditions, appsv1.ReplicaSetCondition{
			Type: appsv1.ReplicaSetConditionType(c.Type), Status: c.Status,
			LastTransitionTime: c.LastTransitionTime, Reason: c.Reason, Message: c.Message,
		})
	}
	written, err := k.client.AppsV1().ReplicaSets(set.Namespace).UpdateStatus(ctx, &set, metav1.UpdateOptions{})
	if err != nil {
		return "", err
	}
	return written.ResourceVersion, nil
}

// Siblings returns the UIDs of all ReplicaSets that the same Deployment controls, including owner.
// It returns nil if no object controls owner. Scale-down first deletes pods on nodes on which many
// pods of these ReplicaSets run. Siblings implements [Kind].
func (k *replicaSets) Siblings(owner Owner) ([]types.UID, error) {
	ref := metav1.GetControllerOfNoCopy(owner.Object)
	if ref == nil {
		return nil, nil
	}
	sets, err := childindex.ControlledBy[*appsv1.ReplicaSet](k.informer.GetIndexer(), ref.UID)
	if err != nil {
		return nil, err
	}
	siblings := make([]types.UID, len(sets))
	for i, set := range sets {
		siblings[i] = set.UID
	}
	return siblings, nil
}
