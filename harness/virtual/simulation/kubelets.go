package simulation

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

// kubelets simulates the kubelets of all nodes. It changes the status of pods, and runs no
// containers.
type kubelets struct {
	client                kubernetes.Interface
	startDelay, stopDelay time.Duration

	group *sync.WaitGroup // goroutines that will start, stop or update pods
	mu    sync.Mutex
	pods  map[types.UID]podProgress
	// paused contains the names of nodes whose kubelet is paused.
	paused map[string]bool
	ips    int // number of IP addresses assigned so far
}

// podProgress says whether the simulated kubelet has begun to start a pod, or to stop it. Each
// begins only once.
type podProgress struct{ starting, stopping bool }

func newKubelets(o Options, group *sync.WaitGroup) *kubelets {
	return &kubelets{client: o.Kubelet, startDelay: o.StartDelay, stopDelay: o.StopDelay, group: group, pods: map[types.UID]podProgress{}, paused: map[string]bool{}}
}

// pause makes the kubelet of a node ignore its pods until resume is called. What it has begun, such as the
// start of a pod, begins again after that.
func (k *kubelets) pause(node string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.paused[node] = true
}

// resume undoes pause. The caller must then call observe for each pod of the node.
func (k *kubelets) resume(node string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.paused, node)
}

// observe handles a new version of a pod. It begins to start or to stop the pod, or to update its
// status. If deleted is true, it only forgets the pod.
func (k *kubelets) observe(ctx context.Context, pod *corev1.Pod, deleted bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if deleted {
		delete(k.pods, pod.UID)
		return
	}
	if k.paused[pod.Spec.NodeName] {
		return
	}
	progress := k.pods[pod.UID]
	switch {
	case pod.Spec.NodeName == "":
		if pod.DeletionTimestamp == nil {
			return
		}
		fallthrough // no kubelet runs it, so the API server has set the grace period 0; a finalizer keeps it
	case pod.DeletionTimestamp != nil:
		if !progress.stopping {
			progress.stopping = true
			k.after(ctx, pod, k.stopDelay, func() { k.remove(ctx, pod) })
		}
	case pod.Status.Phase == corev1.PodPending:
		if !progress.starting {
			progress.starting = true
			k.after(ctx, pod, k.startDelay, func() { k.update(ctx, pod, k.start) })
		}
	case pod.Status.Phase == corev1.PodRunning:
		if condition(pod, corev1.ContainersReady) == corev1.ConditionTrue && condition(pod, corev1.PodReady) == corev1.ConditionFalse {
			k.after(ctx, pod, 0, func() { k.update(ctx, pod, restoreReady) })
		}
	case pod.Status.Reason != cluster.PodCollapsed:
		if condition(pod, corev1.ContainersReady) == corev1.ConditionTrue || condition(pod, corev1.PodReady) == corev1.ConditionTrue {
			k.after(ctx, pod, 0, func() { k.update(ctx, pod, endContainers) })
		}
	}
	k.pods[pod.UID] = progress
}

// after calls f in a new goroutine after a delay. It does not call f if ctx is canceled earlier, or if
// the kubelet of the pod's node is paused when the delay is over.
func (k *kubelets) after(ctx context.Context, pod *corev1.Pod, delay time.Duration, f func()) {
	k.group.Go(func() {
		select {
		case <-time.After(delay):
			if k.mayAct(pod) {
				f()
			}
		case <-ctx.Done():
		}
	})
}

// mayAct reports whether the kubelet of a pod's node is not paused. If it is paused, mayAct forgets what
// the kubelet has begun for the pod.
func (k *kubelets) mayAct(pod *corev1.Pod) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.paused[pod.Spec.NodeName] {
		return true
	}
	delete(k.pods, pod.UID)
	return false
}

// remove deletes a terminating pod with grace period 0, as a kubelet does after the containers have
// ended.
func (k *kubelets) remove(ctx context.Context, pod *corev1.Pod) {
	err := untilAvailable(ctx, func() error {
		return k.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
			GracePeriodSeconds: ptr.To[int64](0), Preconditions: metav1.NewUIDPreconditions(string(pod.UID)),
		})
	})
	report(ctx, "The simulated kubelet could not update a pod", err, pod)
}

// update reads a pod from the API server and writes the pod's status. Before the write, it calls the
// function change, which changes the pod. If change returns false, update writes nothing. The function change gets
// the current version of the pod, so that it does not overwrite a terminal phase.
func (k *kubelets) update(ctx context.Context, pod *corev1.Pod, change func(*corev1.Pod) bool) {
	pods := k.client.CoreV1().Pods(pod.Namespace)
	err := untilAvailable(ctx, func() error {
		return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			current, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
			if err != nil || current.UID != pod.UID || !change(current) {
				return err
			}
			_, err = pods.UpdateStatus(ctx, current, metav1.UpdateOptions{})
			return err
		})
	})
	report(ctx, "The simulated kubelet could not update a pod", err, pod)
}

// hostAddress is the IP address of every node. A pod with hostNetwork has the address of its node.
const hostAddress = "10.0.0.1"

// start makes a Pending pod Running and Ready. It returns false if the pod is not Pending or is
// terminating.
func (k *kubelets) start(pod *corev1.Pod) bool {
	if pod.Status.Phase != corev1.PodPending || pod.DeletionTimestamp != nil {
		return false
	}
	k.mu.Lock()
	k.ips++
	address := fmt.Sprintf("10.128.%d.%d", k.ips/250, k.ips%250+1)
	k.mu.Unlock()
	if pod.Spec.HostNetwork {
		address = hostAddress
	}
	now := metav1.Now()
	status := &pod.Status
	status.Phase, status.StartTime = corev1.PodRunning, &now
	status.PodIP, status.PodIPs = address, []corev1.PodIP{{IP: address}}
	status.HostIP, status.HostIPs = hostAddress, []corev1.HostIP{{IP: hostAddress}}
	for _, c := range []corev1.PodConditionType{corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		setCondition(pod, c, corev1.ConditionTrue, "")
	}
	status.ContainerStatuses = nil
	for _, c := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, Ready: true, Started: ptr.To(true),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		})
	}
	return true
}

// restoreReady sets the condition Ready of a Running pod to True if its containers are ready. It
// returns false if nothing has changed.
func restoreReady(pod *corev1.Pod) bool {
	if pod.Status.Phase != corev1.PodRunning || condition(pod, corev1.ContainersReady) != corev1.ConditionTrue {
		return false
	}
	return setCondition(pod, corev1.PodReady, corev1.ConditionTrue, "")
}

// endContainers makes a Failed or Succeeded pod unready, and marks its containers as terminated. It
// returns false if the pod was already unready, so that no write is necessary.
func endContainers(pod *corev1.Pod) bool {
	phase := pod.Status.Phase
	if phase != corev1.PodFailed && phase != corev1.PodSucceeded || pod.Status.Reason == cluster.PodCollapsed {
		return false
	}
	reason, code := "Pod"+string(phase), int32(0)
	if phase == corev1.PodFailed {
		code = 1
	}
	containers := setCondition(pod, corev1.ContainersReady, corev1.ConditionFalse, reason)
	ready := setCondition(pod, corev1.PodReady, corev1.ConditionFalse, reason)
	for i := range pod.Status.ContainerStatuses {
		c := &pod.Status.ContainerStatuses[i]
		c.Ready, c.Started = false, ptr.To(false)
		c.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, FinishedAt: metav1.Now()}}
	}
	return containers || ready
}

// condition returns the status of a condition of a pod, or "" if the pod has no such condition.
func condition(pod *corev1.Pod, of corev1.PodConditionType) corev1.ConditionStatus {
	for _, c := range pod.Status.Conditions {
		if c.Type == of {
			return c.Status
		}
	}
	return ""
}

// setCondition sets a condition of a pod. It reports whether the status of the condition, such as
// True, has changed.
func setCondition(pod *corev1.Pod, of corev1.PodConditionType, status corev1.ConditionStatus, reason string) bool {
	set := corev1.PodCondition{Type: of, Status: status, Reason: reason, LastTransitionTime: metav1.Now()}
	for i, c := range pod.Status.Conditions {
		if c.Type == of {
			if c.Status == status {
				return false
			}
			pod.Status.Conditions[i] = set
			return true
		}
	}
	pod.Status.Conditions = append(pod.Status.Conditions, set)
	return true
}
