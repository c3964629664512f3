// Package simulation simulates the kube-scheduler and the kubelets of a control plane in virtual
// time.
//
// Both watch pods and write to the API server, as the real programs do. scheduler.go assigns pods to
// nodes. kubelets.go sets the status of pods, and removes pods that terminate. Its pods behave like
// those of the embedded control plane, which KWOK simulates.
package simulation

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
)

// Options are the properties of the nodes and of their kubelets.
type Options struct {
	// Nodes is the number of nodes, which have the names node-0, node-1 and so on.
	Nodes int
	// StartDelay is the time from the scheduling of a pod until the pod is Ready. StopDelay is the
	// time from the graceful deletion of a pod until the pod is removed.
	StartDelay, StopDelay time.Duration
	// Scheduler and Kubelet are the clients of the two components.
	Scheduler, Kubelet kubernetes.Interface
}

// Simulation is a running scheduler with kubelets. Create it with [Start].
type Simulation struct {
	options Options
	group   sync.WaitGroup
	cancel  context.CancelFunc
}

// Start creates the nodes, and starts the scheduler and the kubelets. The caller must call
// [Simulation.Stop].
func Start(ctx context.Context, o Options) (*Simulation, error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s := &Simulation{options: o, cancel: cancel}
	for i := range o.Nodes {
		if err := s.createNode(ctx, fmt.Sprintf("node-%d", i)); err != nil {
			cancel()
			return nil, err
		}
	}
	s.group.Go(func() { newScheduler(o.Scheduler).run(ctx) })
	s.group.Go(func() { newKubelets(s).run(ctx) })
	return s, nil
}

// Stop stops the scheduler and the kubelets, and waits until they have ended.
func (s *Simulation) Stop() {
	s.cancel()
	s.group.Wait()
}

// createNode creates a node that is Ready and has room for all pods.
func (s *Simulation) createNode(ctx context.Context, name string) error {
	now := metav1.Now()
	node, err := s.options.Kubelet.CoreV1().Nodes().Create(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating node %s: %w", name, err)
	}
	node.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: now, LastTransitionTime: now,
	}}
	if _, err := s.options.Kubelet.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("updating the status of node %s: %w", name, err)
	}
	return nil
}

// retryInterval is the time after which a component lists and watches again after an error.
const retryInterval = time.Second

// follow lists and watches objects until ctx is canceled. It calls handle with each listed object,
// as an Added event, and with each watch event. After an error, it lists again.
func follow[L any](ctx context.Context, list func(context.Context, metav1.ListOptions) (L, error), itemsOf func(L) (resourceVersion string, events []watch.Event),
	watchFrom func(context.Context, metav1.ListOptions) (watch.Interface, error), handle func(watch.Event),
) {
	for ctx.Err() == nil {
		err := func() error {
			listed, err := list(ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			version, events := itemsOf(listed)
			for _, event := range events {
				handle(event)
			}
			stream, err := watchFrom(ctx, metav1.ListOptions{ResourceVersion: version})
			if err != nil {
				return err
			}
			defer stream.Stop()
			for event := range stream.ResultChan() {
				if event.Type == watch.Error {
					return fmt.Errorf("watch: %v", event.Object)
				}
				handle(event)
			}
			return nil
		}()
		if err != nil && ctx.Err() == nil {
			klog.ErrorS(err, "The simulation lists and watches again")
			select {
			case <-time.After(retryInterval):
			case <-ctx.Done():
			}
		}
	}
}

// followPods calls handle with each pod and each watch event of a pod.
func followPods(ctx context.Context, client kubernetes.Interface, handle func(watch.EventType, *corev1.Pod)) {
	pods := client.CoreV1().Pods(metav1.NamespaceAll)
	follow(ctx, pods.List, func(l *corev1.PodList) (version string, events []watch.Event) {
		for i := range l.Items {
			events = append(events, watch.Event{Type: watch.Added, Object: &l.Items[i]})
		}
		return l.ResourceVersion, events
	}, pods.Watch, func(event watch.Event) {
		if pod, ok := event.Object.(*corev1.Pod); ok {
			handle(event.Type, pod)
		}
	})
}
