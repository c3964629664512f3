package controlplane

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	apipod "k8s.io/kubernetes/pkg/api/v1/pod"
	utilpod "k8s.io/kubernetes/pkg/util/pod"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

const (
	// podGCPeriod is the interval at which the collector looks at all pods. missingNodeTime is the time
	// for which its cache must lack a node. kube-controller-manager has the same ones.
	podGCPeriod, missingNodeTime = 20 * time.Second, 40 * time.Second
)

// podCollector deletes pods that no kubelet removes. These are the pods of deleted nodes, terminating
// pods that were never scheduled, and terminating pods of lost nodes with the taint
// node.kubernetes.io/out-of-service.
//
// It does what the pod garbage collector of kube-controller-manager does, with the same requests; a
// test compares them. That one would add 250 packages to gauntlet-virtual, because it imports the
// kubelet, which imports kube-scheduler. It also deletes the oldest terminated pods when there are
// more than 12,500. This collector does not.
type podCollector struct {
	client  kubernetes.Interface
	pods    corelisters.PodLister
	nodes   corelisters.NodeLister
	synced  []cache.InformerSynced
	missing map[string]time.Time // when a node was first missing from the cache
}

func newPodCollector(client kubernetes.Interface, factory informers.SharedInformerFactory) *podCollector {
	pods, nodes := factory.Core().V1().Pods(), factory.Core().V1().Nodes()
	return &podCollector{
		client: client, pods: pods.Lister(), nodes: nodes.Lister(),
		synced:  []cache.InformerSynced{pods.Informer().HasSynced, nodes.Informer().HasSynced},
		missing: map[string]time.Time{},
	}
}

// run collects pods at regular intervals until ctx is canceled.
func (c *podCollector) run(ctx context.Context) {
	if !cache.WaitForCacheSync(ctx.Done(), c.synced...) {
		return
	}
	ticker := time.NewTicker(podGCPeriod)
	defer ticker.Stop()
	for {
		c.collect(ctx)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// collect looks at each pod of the cache once.
func (c *podCollector) collect(ctx context.Context) {
	pods, err := c.pods.List(labels.Everything())
	if err != nil {
		klog.ErrorS(err, "Failed to list the pods")
		return
	}
	deleted := c.deletedNodes(ctx, pods)
	for _, pod := range pods {
		if ctx.Err() != nil {
			return
		}
		var condition *corev1.PodCondition
		if deleted[pod.Spec.NodeName] {
			condition = &corev1.PodCondition{
				Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
				ObservedGeneration: apipod.CalculatePodConditionObservedGeneration(&pod.Status, pod.Generation, corev1.DisruptionTarget),
				Reason:             "DeletionByPodGC", Message: "PodGC: node no longer exists",
			}
		} else if pod.DeletionTimestamp == nil || pod.Spec.NodeName != "" && !c.outOfService(pod.Spec.NodeName) {
			continue
		}
		if err := c.remove(ctx, pod, condition); err != nil && !apierrors.IsNotFound(err) {
			klog.ErrorS(err, "Failed to delete a pod without a kubelet", "pod", klog.KObj(pod))
		}
	}
}

// deletedNodes returns the names of nodes that have pods but do not exist. The cache has lacked these nodes
// for some time, and the API server lacks them, too.
func (c *podCollector) deletedNodes(ctx context.Context, pods []*corev1.Pod) map[string]bool {
	missing, deleted := map[string]time.Time{}, map[string]bool{}
	for _, pod := range pods {
		name := pod.Spec.NodeName
		if _, err := c.nodes.Get(name); name == "" || err == nil || !missing[name].IsZero() {
			continue
		}
		missing[name] = time.Now()
		if first, known := c.missing[name]; known {
			missing[name] = first
		}
		if time.Since(missing[name]) < missingNodeTime {
			continue
		}
		_, err := c.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		missing[name] = time.Now() // pods that remain are deleted again after the same time
		if deleted[name] = apierrors.IsNotFound(err); err != nil && !deleted[name] {
			klog.ErrorS(err, "Failed to read a node", "node", name)
		}
	}
	c.missing = missing
	return deleted
}

// outOfService returns whether a node is lost and has the taint of nodes that are out of service.
func (c *podCollector) outOfService(name string) bool {
	node, err := c.nodes.Get(name)
	if err != nil || cluster.Ready(node) {
		return false
	}
	for _, taint := range node.Spec.Taints {
		if taint.Key == corev1.TaintNodeOutOfService {
			return true
		}
	}
	return false
}

// remove deletes a pod without a grace period. If the pod has not ended, remove first sets its phase to
// Failed and adds the condition, unless it is nil.
func (c *podCollector) remove(ctx context.Context, pod *corev1.Pod, condition *corev1.PodCondition) error {
	if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
		failed := pod.Status.DeepCopy()
		failed.Phase, failed.ObservedGeneration = corev1.PodFailed, apipod.CalculatePodStatusObservedGeneration(pod)
		if condition != nil {
			apipod.UpdatePodCondition(failed, condition)
		}
		if _, _, _, err := utilpod.PatchPodStatus(ctx, c.client, pod.Namespace, pod.Name, pod.UID, pod.Status, *failed); err != nil {
			return err
		}
	}
	return c.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, *metav1.NewDeleteOptions(0))
}
