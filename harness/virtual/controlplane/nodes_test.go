package controlplane

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

// TestPausedKubelet checks that the node controllers taint a node whose kubelet is paused, and evict its
// pods, which stay terminating. After ResumeKubelet, the node is healthy and the pods are gone.
func TestPausedKubelet(t *testing.T) {
	withPods(t, func(f *fixture, lost string) {
		if err := f.controlPlane.PauseKubelet(f.Context(), lost); err != nil {
			f.Fatal(err)
		}
		f.setReady(lost, corev1.ConditionUnknown)
		time.Sleep(5 * time.Minute) // pods tolerate a lost node for this time
		f.await("the eviction of the pods of the lost node", func(context.Context) error {
			return f.eachPodOf(lost, func(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil })
		})
		f.await("the replacements on the other node", func(context.Context) error {
			return f.readyElsewhere(lost, 4)
		})
		time.Sleep(time.Minute)
		if err := f.eachPodOf(lost, func(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil }); err != nil {
			f.Errorf("a minute after the eviction: %v", err)
		}
		if err := f.controlPlane.ResumeKubelet(f.Context(), lost); err != nil {
			f.Fatal(err)
		}
		f.awaitPods(4)
		f.await("the end of the evicted pods", func(context.Context) error {
			if n := len(f.pods()); n != 4 {
				return fmt.Errorf("found %d pods", n)
			}
			return nil
		})
	})
}

// TestDeletedNode checks that the garbage collector of pods deletes the pods of a deleted node. Register
// must then create the node again.
func TestDeletedNode(t *testing.T) {
	withPods(t, func(f *fixture, lost string) {
		if err := f.client.CoreV1().Nodes().Delete(f.Context(), lost, metav1.DeleteOptions{}); err != nil {
			f.Fatal(err)
		}
		f.await("the replacements on the other node", func(context.Context) error { return f.readyElsewhere(lost, 4) })
		if err := f.controlPlane.Register(f.Context(), lost); err != nil {
			f.Fatal(err)
		}
		node, err := f.client.CoreV1().Nodes().Get(f.Context(), lost, metav1.GetOptions{})
		if err != nil || !cluster.Ready(node) || len(node.Spec.Taints) > 0 {
			f.Errorf("after Register: node %v, error %v; want a node that is Ready, without taints", node, err)
		}
	})
}

// withPods calls the function test with the name of a node that runs some of four pods. It needs the patched
// runtime, because controllers wait for locks while time must pass. With the runtime of Go, the clock of
// the bubble would stop.
func withPods(t *testing.T, test func(f *fixture, node string)) {
	if testing.Short() {
		t.Skip("make test-slow runs it, with the patched runtime")
	}
	inBubble(t, func(f *fixture) {
		f.createDeployment(4)
		f.awaitPods(4)
		test(f, f.pods()[0].Spec.NodeName)
	})
}

// setReady sets the condition Ready of a node, as the node controller does when the heartbeats stop.
func (f *fixture) setReady(name string, status corev1.ConditionStatus) {
	f.Helper()
	node, err := f.client.CoreV1().Nodes().Get(f.Context(), name, metav1.GetOptions{})
	if err != nil {
		f.Fatal(err)
	}
	node.Status.Conditions[0].Status, node.Status.Conditions[0].LastTransitionTime = status, metav1.Now()
	if _, err := f.client.CoreV1().Nodes().UpdateStatus(f.Context(), node, metav1.UpdateOptions{}); err != nil {
		f.Fatal(err)
	}
}

// eachPodOf returns an error unless the node has pods, and all of them have the property.
func (f *fixture) eachPodOf(node string, property func(*corev1.Pod) bool) error {
	n := 0
	for _, pod := range f.pods() {
		if pod.Spec.NodeName != node {
			continue
		}
		n++
		if !property(&pod) {
			return fmt.Errorf("pod %s of node %s does not have the property", pod.Name, node)
		}
	}
	if n == 0 {
		return fmt.Errorf("node %s has no pods", node)
	}
	return nil
}

// readyElsewhere returns an error unless the given number of pods are ready on other nodes.
func (f *fixture) readyElsewhere(node string, want int) error {
	n := 0
	for _, pod := range f.pods() {
		if pod.Spec.NodeName != node && cluster.PodReady(&pod) {
			n++
		}
	}
	if n != want {
		return fmt.Errorf("%d pods are ready on other nodes, want %d", n, want)
	}
	return nil
}
