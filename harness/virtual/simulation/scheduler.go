package simulation

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

// These constants limit the time until the scheduler tries again to bind a pod. The API server has
// refused the binding before. As in kube-scheduler, the time is backoffMin at first, and doubles with each
// refusal up to backoffMax.
const (
	backoffMin = time.Second
	backoffMax = 10 * time.Second
)

// scheduler assigns each pod to the next schedulable node, in turn. It honors the node selector and
// the required node affinity of a pod, and ignores resource requests, other affinity and priorities.
//
// Only the method run changes the fields, so they need no lock. In a bubble of testing/synctest,
// time would not advance while a goroutine waits for a lock.
type scheduler struct {
	client  kubernetes.Interface
	events  chan event
	nodes   []*corev1.Node             // all nodes, sorted by name
	pending map[types.UID]*unscheduled // pods without a node
	next    int                        // number of nodes that the scheduler has tried so far
}

// unscheduled is a pod without a node.
type unscheduled struct {
	pod      *corev1.Pod // latest version of the pod
	refusals int         // number of refused bindings
	retryAt  time.Time   // when the scheduler tries again; zero if the pod need not wait
	// written is the condition PodScheduled that the scheduler last wrote to the pod. It is nil if
	// the scheduler has written none.
	written *corev1.PodCondition
}

// event is a new version of a pod or a node, as an informer delivers it.
type event struct {
	pod     *corev1.Pod  // nil if the event is about a node
	node    *corev1.Node // nil if the event is about a pod
	deleted bool
}

func newScheduler(client kubernetes.Interface) *scheduler {
	return &scheduler{client: client, events: make(chan event), pending: map[types.UID]*unscheduled{}}
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
		case <-s.retry():
		case <-ctx.Done():
			return
		}
		s.assign(ctx)
	}
}

// retry returns a channel that receives a value when the first pod need not wait any longer. The
// channel is nil if no pod waits.
func (s *scheduler) retry() <-chan time.Time {
	var first time.Time
	for _, p := range s.pending {
		if !p.retryAt.IsZero() && (first.IsZero() || p.retryAt.Before(first)) {
			first = p.retryAt
		}
	}
	if first.IsZero() {
		return nil
	}
	return time.After(time.Until(first))
}

// observePod adds a pod without a node to the pending pods. It removes a pod that has a node, is
// terminating or is deleted.
func (s *scheduler) observePod(pod *corev1.Pod, deleted bool) {
	if deleted || pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil {
		delete(s.pending, pod.UID)
	} else if known := s.pending[pod.UID]; known != nil {
		known.pod = pod
	} else {
		s.pending[pod.UID] = &unscheduled{pod: pod}
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

// assign assigns all pods that need not wait to schedulable nodes, in the order of their names.
func (s *scheduler) assign(ctx context.Context) {
	pods := slices.SortedFunc(maps.Values(s.pending), func(a, b *unscheduled) int {
		return cmp.Or(cmp.Compare(a.pod.Namespace, b.pod.Namespace), cmp.Compare(a.pod.Name, b.pod.Name))
	})
	for _, p := range pods {
		if p.retryAt.After(time.Now()) {
			continue
		}
		p.retryAt = time.Time{}
		node := s.nodeFor(p.pod)
		if node == "" {
			message := fmt.Sprintf("0/%d nodes are available", len(s.nodes))
			s.explain(ctx, p, corev1.PodReasonUnschedulable, message)
			continue
		}
		err := s.client.CoreV1().Pods(p.pod.Namespace).Bind(ctx, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: p.pod.Name, Namespace: p.pod.Namespace, UID: p.pod.UID},
			Target:     corev1.ObjectReference{Kind: "Node", Name: node},
		}, metav1.CreateOptions{})
		if err == nil || apierrors.IsNotFound(err) {
			delete(s.pending, p.pod.UID)
			continue
		}
		p.retryAt = time.Now().Add(min(backoffMin<<min(p.refusals, 10), backoffMax))
		p.refusals++
		// The API server reports every error as a conflict, also that etcd is down. If another client
		// has deleted or bound the pod, an event will remove the pod from s.pending.
		if !apierrors.IsConflict(err) {
			s.explain(ctx, p, corev1.PodReasonSchedulerError, err.Error())
		}
	}
}

// explain writes to the status of a pod why the pod has no node. It writes each reason only once.
func (s *scheduler) explain(ctx context.Context, p *unscheduled, reason, message string) {
	condition := &corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, Message: message, LastTransitionTime: metav1.Now(),
	}
	if p.written != nil {
		if p.written.Reason == reason && p.written.Message == message {
			return
		}
		condition.LastTransitionTime = p.written.LastTransitionTime // the status stays False
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": p.pod.UID},
		"status":   map[string]any{"conditions": []*corev1.PodCondition{condition}},
	})
	if err == nil {
		_, err = s.client.CoreV1().Pods(p.pod.Namespace).Patch(ctx, p.pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	}
	if err == nil {
		p.written = condition
	} else {
		p.retryAt = time.Now().Add(backoffMin)
	}
	report(ctx, "The simulated scheduler could not update a pod", err, p.pod)
}

// nodeFor returns the name of the next node that accepts the pod. It returns "" if no node accepts
// the pod.
func (s *scheduler) nodeFor(pod *corev1.Pod) string {
	required := nodeaffinity.GetRequiredNodeAffinity(pod)
	for range s.nodes {
		node := s.nodes[s.next%len(s.nodes)]
		s.next++
		selected, err := required.Match(node)
		if err == nil && selected && cluster.NodeSchedulable(node) == nil && tolerates(pod, node) {
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
