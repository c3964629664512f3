package simulation

import (
	"cmp"
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

// scheduler assigns each pod to the next schedulable node, in turn. It ignores resource requests,
// affinity and priorities.
//
// Only the method run changes the fields, so they need no lock. In a bubble of testing/synctest,
// time would not advance while a goroutine waits for a lock.
type scheduler struct {
	client  kubernetes.Interface
	events  chan event
	nodes   []*corev1.Node            // all nodes, sorted by name
	pending map[types.UID]*corev1.Pod // pods without a node
	next    int                       // number of nodes that the scheduler has tried so far
}

// event is a new version of a pod or a node, as an informer delivers it.
type event struct {
	pod     *corev1.Pod  // nil if the event is about a node
	node    *corev1.Node // nil if the event is about a pod
	deleted bool
}

func newScheduler(client kubernetes.Interface) *scheduler {
	return &scheduler{client: client, events: make(chan event), pending: map[types.UID]*corev1.Pod{}}
}

// send passes an event to the method run, which handles all events in one goroutine.
func (s *scheduler) send(ctx context.Context, e event) {
	select {
	case s.events <- e:
	case <-ctx.Done():
	}
}

// run schedules pods until ctx is canceled.
func (s *scheduler) run(ctx context.Context) {
	for {
		select {
		case e := <-s.events:
			if e.pod != nil {
				s.observePod(e.pod, e.deleted)
			} else {
				s.observeNode(e.node, e.deleted)
			}
			s.assign(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// observePod adds a pod without a node to the pending pods. It removes a pod that has a node, is
// terminating or is deleted.
func (s *scheduler) observePod(pod *corev1.Pod, deleted bool) {
	if deleted || pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil {
		delete(s.pending, pod.UID)
	} else {
		s.pending[pod.UID] = pod
	}
}

// observeNode adds or replaces a node in the list of nodes. If deleted is true, it removes the
// node.
func (s *scheduler) observeNode(node *corev1.Node, deleted bool) {
	i, found := slices.BinarySearchFunc(s.nodes, node.Name, func(n *corev1.Node, name string) int { return cmp.Compare(n.Name, name) })
	switch {
	case deleted && found:
		s.nodes = slices.Delete(s.nodes, i, i+1)
	case found:
		s.nodes[i] = node
	case !deleted:
		s.nodes = slices.Insert(s.nodes, i, node)
	}
}

// assign assigns all pending pods to schedulable nodes, in the order of their names.
func (s *scheduler) assign(ctx context.Context) {
	pods := slices.SortedFunc(maps.Values(s.pending), func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for _, pod := range pods {
		node := s.nodeFor(pod)
		if node == "" {
			continue
		}
		err := s.client.CoreV1().Pods(pod.Namespace).Bind(ctx, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID},
			Target:     corev1.ObjectReference{Kind: "Node", Name: node},
		}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			if ctx.Err() == nil {
				klog.ErrorS(err, "The simulated scheduler could not bind a pod", "pod", klog.KObj(pod))
			}
			continue
		}
		delete(s.pending, pod.UID)
	}
}

// nodeFor returns the name of the next node that accepts the pod. It returns "" if no node accepts
// the pod.
func (s *scheduler) nodeFor(pod *corev1.Pod) string {
	for range s.nodes {
		node := s.nodes[s.next%len(s.nodes)]
		s.next++
		if cluster.NodeSchedulable(node) == nil && tolerates(pod, node) {
			return node.Name
		}
	}
	return ""
}

// tolerates reports whether the pod may run on the node despite the node's taints. It ignores
// taints with the effect PreferNoSchedule.
func tolerates(pod *corev1.Pod, node *corev1.Node) bool {
	for _, taint := range node.Spec.Taints {
		if taint.Effect == corev1.TaintEffectPreferNoSchedule {
			continue
		}
		if !slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool { return t.ToleratesTaint(klog.Background(), &taint, false) }) {
			return false
		}
	}
	return true
}
