// Package podcontrol creates, deletes and patches pods for a controller. It emits events about
// creates and deletes.
package podcontrol

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
)

// These are the reasons of the events that this package emits.
const (
	SuccessfulCreate = "SuccessfulCreate"
	FailedCreate     = "FailedCreate"
	SuccessfulDelete = "SuccessfulDelete"
	FailedDelete     = "FailedDelete"
)

// Owner is the ReplicaSet or ReplicationController for which the controller writes pods. The Events
// that the controller emits refer to this owner.
type Owner interface {
	metav1.Object
	runtime.Object
}

// Control creates, deletes and patches pods, and emits events about creates and deletes.
type Control struct {
	client kubernetes.Interface
	events record.EventRecorder
}

// New returns a Control that sends its requests through the given client and emits its events
// through the recorder.
func New(client kubernetes.Interface, events record.EventRecorder) *Control {
	return &Control{client: client, events: events}
}

// Create creates a pod from a template. The controllerRef of the pod points to the argument owner,
// which has the kind gvk. Create emits an event about the result, except if the namespace is
// terminating; see NamespaceTerminating.
func (c *Control) Create(ctx context.Context, owner Owner, gvk schema.GroupVersionKind, template *corev1.PodTemplateSpec) (*corev1.Pod, error) {
	pod, err := c.client.CoreV1().Pods(owner.GetNamespace()).Create(ctx, FromTemplate(owner, gvk, template), metav1.CreateOptions{})
	if err != nil {
		if !NamespaceTerminating(err) {
			c.events.Eventf(owner, corev1.EventTypeWarning, FailedCreate, "Error creating: %v", err)
		}
		return nil, fmt.Errorf("creating a pod for %s %s/%s: %w", gvk.Kind, owner.GetNamespace(), owner.GetName(), err)
	}
	c.events.Eventf(owner, corev1.EventTypeNormal, SuccessfulCreate, "Created pod: %s", pod.Name)
	return pod, nil
}

// Delete deletes a pod and emits an event about the result. The request has the pod's UID as a
// precondition. If the pod does not exist, Delete emits no event and returns a NotFound error.
func (c *Control) Delete(ctx context.Context, owner Owner, pod *corev1.Pod) error {
	options := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))}
	err := c.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, options)
	if err != nil {
		if !apierrors.IsNotFound(err) {
			c.events.Eventf(owner, corev1.EventTypeWarning, FailedDelete, "Error deleting: %v", err)
		}
		return fmt.Errorf("deleting pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	c.events.Eventf(owner, corev1.EventTypeNormal, SuccessfulDelete, "Deleted pod: %s", pod.Name)
	return nil
}

// Patch sends the strategic merge patch in data for a pod. It returns the patched pod, and emits
// no event.
func (c *Control) Patch(ctx context.Context, pod *corev1.Pod, data []byte) (*corev1.Pod, error) {
	return c.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, data, metav1.PatchOptions{})
}

// NamespaceTerminating reports whether err means that the namespace of a create is terminating.
// The API server then rejects every further create in the namespace.
func NamespaceTerminating(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// FromTemplate returns the pod that Create sends to the API server. The API server generates the
// name from the owner's name and a random suffix.
func FromTemplate(owner metav1.Object, gvk schema.GroupVersionKind, template *corev1.PodTemplateSpec) *corev1.Pod {
	// Copy the template, because an object in the informer cache contains it.
	template = template.DeepCopy()
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName:    owner.GetName() + "-",
			Labels:          template.Labels,
			Annotations:     template.Annotations,
			Finalizers:      template.Finalizers,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, gvk)},
		},
		Spec: template.Spec,
	}
}
