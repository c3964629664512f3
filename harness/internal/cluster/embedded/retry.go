package embedded

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

// retryAfter is the time that KWOK gets to start or stop a pod, in addition to the delays of pods. A pod
// that has not changed since then is processed again.
const retryAfter = 5 * time.Second

// kubeletRetries makes KWOK process pods again whose start or stop the API server has refused. A webhook
// of an operator refuses it while the operator does not run, for example. A kubelet tries again, but KWOK
// gives up; see [Cluster.retriggerKWOK].
//
// The interval between two attempts for a pod doubles each time, unless the attempt itself fails.
type kubeletRetries struct {
	client kubernetes.Interface
	clock  clock.PassiveClock
	// podDelay is the larger one of Options.PodStartDelay and Options.PodStopDelay.
	podDelay time.Duration
	waiting  map[*corev1.Pod]bool // versions of pods for which reconcile was called once
}

// startKubeletRetries starts a [kubeletRetries]. It runs until the caller calls the returned function
// stop.
func (c *Cluster) startKubeletRetries(ctx context.Context, opts Options) (stop func(), err error) {
	client, err := kubernetes.NewForConfig(c.Config(cluster.Admin))
	if err != nil {
		return nil, err
	}
	r := &kubeletRetries{client, clock.RealClock{}, max(opts.PodStartDelay, opts.PodStopDelay), map[*corev1.Pod]bool{}}
	factory := informers.NewSharedInformerFactory(client, 0)
	return startReconciler(ctx, factory, r.reconcile, factory.Core().V1().Pods().Informer())
}

// reconcile processes one version of a pod. At the first call, it returns when to call it again. If the
// pod has not changed by then, the second call makes KWOK process the pod. It never returns an error:
// after one, it returns when to call it again.
func (r *kubeletRetries) reconcile(ctx context.Context, object any) (again time.Duration, err error) {
	pod, ok := object.(*corev1.Pod)
	if !ok || !awaitsKubelet(pod) {
		return 0, nil
	}
	if !r.waiting[pod] {
		r.waiting[pod] = true
		return max(r.podDelay+retryAfter, r.clock.Since(kubeletTask(pod))), nil
	}
	node, err := r.client.CoreV1().Nodes().Get(ctx, pod.Spec.NodeName, metav1.GetOptions{})
	if err == nil && node.Labels[silentLabel] != "" { // a fault has paused the kubelet
		return retryAfter, nil
	}
	if err == nil {
		err = retrigger(ctx, r.client, pod)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return retryAfter, nil
	}
	delete(r.waiting, pod)
	return 0, nil
}

// awaitsKubelet reports whether the kubelet of a pod's node must start or stop the pod. A pod that only
// its finalizers retain has been stopped.
func awaitsKubelet(pod *corev1.Pod) bool {
	switch {
	case pod.Spec.NodeName == "":
		return false
	case pod.DeletionTimestamp != nil:
		return len(pod.Finalizers) == 0 || ptr.Deref(pod.DeletionGracePeriodSeconds, 0) > 0
	}
	return pod.Status.Phase == corev1.PodPending
}

// kubeletTask returns the time since which the kubelet should have started or stopped a pod.
func kubeletTask(pod *corev1.Pod) time.Time {
	if pod.DeletionTimestamp == nil {
		return pod.CreationTimestamp.Time
	}
	return pod.DeletionTimestamp.Add(-time.Duration(ptr.Deref(pod.DeletionGracePeriodSeconds, 0)) * time.Second)
}

// retrigger makes KWOK process a pod again: it changes an annotation of the pod. It returns the error of
// the API server. It returns nil if the pod has changed since, because KWOK then processes the pod anyway.
func retrigger(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod) error {
	patch := fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q,"annotations":{%q:%q}}}`, pod.ResourceVersion, retriggerAnnotation, time.Now().Format(time.RFC3339Nano))
	_, err := client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsConflict(err) {
		return nil
	}
	return err
}
