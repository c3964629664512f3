package catalog

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// TestNodeCordon checks that the scheduler assigns no new pod to a cordoned node until the fault
// is healed. The node's running pods must remain.
func TestNodeCordon(t *testing.T) {
	l := startLive(t)
	l.runPod("settled", ready)
	heal := l.inject("node-cordon", "{}")
	unscheduled := l.unscheduledPods()
	if pod := l.pod("settled"); pod == nil || pod.DeletionTimestamp != nil {
		t.Error("the running pod is gone")
	}
	heal()
	l.awaitPod(unscheduled, ready)
}

// TestNodeTaint checks that the scheduler assigns no new pod to a tainted node until the fault
// is healed. Only the effect NoExecute may delete the node's running pods.
func TestNodeTaint(t *testing.T) {
	for params, stays := range map[string]bool{"{}": false, "effect: NoExecute": false, "effect: NoSchedule": true} {
		t.Run(params, func(t *testing.T) {
			l := startLive(t)
			l.runPod("there", ready)
			heal := l.inject("node-taint", params)
			if !stays {
				l.awaitPod("there", gone)
			}
			unscheduled := l.unscheduledPods()
			if pod := l.pod("there"); stays && (!ready(pod) || pod.DeletionTimestamp != nil) {
				t.Errorf("the running pod is %v, want it ready and not terminating", pod)
			}
			heal()
			l.awaitPod(unscheduled, ready)
			if taints := l.node().Spec.Taints; len(taints) != 0 {
				t.Errorf("after healing the node has the taints %v, want none", taints)
			}
		})
	}
}

// TestNodeDrain checks that the fault evicts pods with a controllerRef. A pod must remain if a
// PodDisruptionBudget forbids its eviction for longer than the parameter patience.
func TestNodeDrain(t *testing.T) {
	l := startLive(t)
	owner := metav1.NewControllerRef(l.commit("owner"), corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	l.runPod("free", ready, *owner)
	l.runPod("guarded", ready, *owner)
	l.runPod("orphan", ready)
	l.protect("guarded")
	heal := l.inject("node-drain", "patience: 1s")
	failure := l.Await(t, "end of the patience", func(r history.Record) bool {
		return r.Fault != nil && r.Fault.Event == history.FaultFailed
	})
	if !strings.Contains(failure.Fault.Detail, " not evicted within 1s") {
		t.Errorf("recorded failure %q, want one pod that was not evicted", failure.Fault.Detail)
	}
	l.awaitPod("free", gone)
	for _, name := range []string{"guarded", "orphan"} {
		if pod := l.pod(name); pod == nil || pod.DeletionTimestamp != nil {
			t.Errorf("pod %s was evicted, want it to remain", name)
		}
	}
	if fired := l.fired(); fired != 1 || !l.node().Spec.Unschedulable {
		t.Errorf("fired %d times, want once; unschedulable: %t", fired, l.node().Spec.Unschedulable)
	}
	heal()
	if l.node().Spec.Unschedulable {
		t.Error("the node is unschedulable after healing")
	}
}

// TestNodeNotReady checks that the node's pods become not ready, and that deleted pods remain
// terminating. The scheduler must assign no new pod to the node until the fault is healed.
func TestNodeNotReady(t *testing.T) {
	l := startLive(t)
	l.runPod("stays", ready)
	l.runPod("deleted", ready)
	heal := l.inject("node-not-ready", "{}")
	l.awaitPod("stays", func(pod *corev1.Pod) bool { return has(pod, corev1.PodReady, corev1.ConditionFalse) })
	if err := l.admin.CoreV1().Pods(l.namespace).Delete(t.Context(), "deleted", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	unscheduled := l.unscheduledPods() // unscheduledPods takes longer than a running kubelet needs to stop the deleted pod
	if pod := l.pod("deleted"); pod == nil || pod.DeletionTimestamp == nil {
		t.Errorf("the deleted pod is %v, want it terminating", pod)
	}
	heal()
	l.awaitPod("deleted", gone)
	l.awaitPod("stays", ready)
	l.awaitPod(unscheduled, ready)
}

// TestNodeDelete checks that the fault also deletes the pods on the deleted node. The scheduler
// must assign no new pod to the node until the fault is healed.
func TestNodeDelete(t *testing.T) {
	l := startLive(t)
	l.runPod("lost", ready)
	before := l.node()
	heal := l.inject("node-delete", "{}")
	if pod := l.pod("lost"); pod != nil {
		t.Errorf("the node's pod still exists: %v", pod)
	}
	unscheduled := l.unscheduledPods()
	heal()
	l.awaitPod(unscheduled, ready)
	if after := l.node(); after.Name != before.Name || after.UID == before.UID {
		t.Errorf("after healing the node is %s with UID %s, before it was %s with UID %s; want the same name and a new UID", after.Name, after.UID, before.Name, before.UID)
	}
}

// node returns the only node of the cluster.
func (l *live) node() *corev1.Node {
	l.t.Helper()
	list, err := l.admin.CoreV1().Nodes().List(l.t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 {
		l.t.Fatalf("listing the nodes: got %d nodes, error %v; want 1 node and no error", len(list.Items), err)
	}
	return &list.Items[0]
}

// runPod creates a pod with the given name and a label of the same value. It waits until the
// function until returns true for the pod.
func (l *live) runPod(name string, until func(*corev1.Pod) bool, owners ...metav1.OwnerReference) {
	l.t.Helper()
	err := l.poll("pod "+name+" to be admitted", func(ctx context.Context) error { // pods are admitted only after the namespace has a service account
		_, err := l.admin.CoreV1().Pods(l.namespace).Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"name": name}, OwnerReferences: owners},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "none"}}},
		}, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		l.t.Fatal(err)
	}
	l.awaitPod(name, until)
}

// unscheduledPods creates pods until the scheduler leaves one without a node, and returns the
// name of this pod. It may need several pods, because the scheduler notices a change of the
// nodes late.
func (l *live) unscheduledPods() (name string) {
	l.t.Helper()
	decided := func(pod *corev1.Pod) bool {
		return gone(pod) || has(pod, corev1.PodScheduled, corev1.ConditionFalse) || has(pod, corev1.PodScheduled, corev1.ConditionTrue)
	}
	tried := 0
	err := l.poll("an unschedulable pod", func(context.Context) error {
		tried++
		name = fmt.Sprintf("unscheduled-%d", tried)
		l.runPod(name, decided)
		if pod := l.pod(name); !has(pod, corev1.PodScheduled, corev1.ConditionFalse) {
			return fmt.Errorf("found pod %v, want one that is not scheduled", pod)
		}
		return nil
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return name
}

// pod returns the pod with the given name, or nil if the pod does not exist.
func (l *live) pod(name string) *corev1.Pod {
	l.t.Helper()
	pod, err := l.admin.CoreV1().Pods(l.namespace).Get(l.t.Context(), name, metav1.GetOptions{})
	if isNotFound(err) {
		return nil
	}
	if err != nil {
		l.t.Fatal(err)
	}
	return pod
}

// awaitPod waits until the function holds returns true for a pod. The function holds gets nil if
// the pod does not exist.
func (l *live) awaitPod(name string, holds func(*corev1.Pod) bool) {
	l.t.Helper()
	err := l.poll("pod "+name, func(context.Context) error {
		if pod := l.pod(name); !holds(pod) {
			return fmt.Errorf("found %v", pod)
		}
		return nil
	})
	if err != nil {
		l.t.Fatal(err)
	}
}

// protect creates a PodDisruptionBudget that allows no disruption of a pod. It waits until
// the disruption controller has processed the budget.
func (l *live) protect(name string) {
	l.t.Helper()
	one := intstr.FromInt32(1)
	budgets := l.admin.PolicyV1().PodDisruptionBudgets(l.namespace)
	_, err := budgets.Create(l.t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"name": name}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		l.t.Fatal(err)
	}
	err = l.poll("the disruption budget", func(ctx context.Context) error {
		budget, err := budgets.Get(ctx, name, metav1.GetOptions{})
		if err == nil && (budget.Status.ObservedGeneration < budget.Generation || budget.Status.CurrentHealthy != 1) {
			err = errors.New("its status does not contain the pod")
		}
		return err
	})
	if err != nil {
		l.t.Fatal(err)
	}
}

// poll calls the function look until look returns nil, for at most one minute. The argument what
// names the awaited state in the error.
func (l *live) poll(what string, look func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(l.t.Context(), time.Minute)
	defer cancel()
	return cluster.Poll(ctx, 20*time.Millisecond, what, look)
}

func gone(pod *corev1.Pod) bool { return pod == nil }

func ready(pod *corev1.Pod) bool { return has(pod, corev1.PodReady, corev1.ConditionTrue) }

func has(pod *corev1.Pod, kind corev1.PodConditionType, value corev1.ConditionStatus) bool {
	if pod == nil {
		return false
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == kind {
			return c.Status == value
		}
	}
	return false
}
