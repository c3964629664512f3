// Package simulation simulates the kube-scheduler and the kubelets of a control plane in virtual
// time.
//
// Both watch the API server and write to it, as the real programs do; they share their informers.
// scheduler.go assigns pods to nodes. kubelets.go sets the status of pods, and removes pods that
// terminate. Its pods behave like those of the embedded control plane, which KWOK simulates.
package simulation

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

// Options are the properties of the nodes and of their kubelets.
type Options struct {
	// Nodes is the number of nodes, which have the names node-0, node-1 and so on.
	Nodes int
	// StartDelay is the time from the scheduling of a pod until the pod is Ready. StopDelay is the
	// time from the graceful deletion of a pod until the pod is removed.
	StartDelay, StopDelay time.Duration
	// Scheduler and Kubelet are the clients with which the two components send their writes. The
	// client Kubelet also sends the watches of both.
	Scheduler, Kubelet kubernetes.Interface
	// NodeDeleted is called in a new goroutine when a node has been deleted. It may be nil.
	NodeDeleted func()
}

// Simulation is a running scheduler with kubelets. Create it with [Start].
type Simulation struct {
	options   Options
	informers informers.SharedInformerFactory
	kubelets  *kubelets
	// observePod makes the kubelets handle a version of a pod. It is kubelets.observe with the context
	// that Stop cancels.
	observePod func(pod *corev1.Pod, deleted bool)
	group      sync.WaitGroup
	cancel     context.CancelFunc
}

// Start creates the nodes, and starts the scheduler and the kubelets. The caller must call
// [Simulation.Stop].
func Start(ctx context.Context, o Options) (*Simulation, error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s := &Simulation{options: o, informers: informers.NewSharedInformerFactory(o.Kubelet, 0), cancel: cancel}
	for i := range o.Nodes {
		if err := s.createNode(ctx, fmt.Sprintf("node-%d", i)); err != nil {
			cancel()
			return nil, err
		}
	}
	scheduler, kubelets := newScheduler(o.Scheduler), newKubelets(o, &s.group)
	s.kubelets = kubelets
	s.observePod = func(pod *corev1.Pod, deleted bool) { kubelets.observe(ctx, pod, deleted) }
	core := s.informers.Core().V1()
	if err := errors.Join(
		notify(core.Pods().Informer(), s.observePod),
		notify(core.Pods().Informer(), func(pod *corev1.Pod, deleted bool) { scheduler.send(ctx, event{pod: pod, deleted: deleted}) }),
		notify(core.Nodes().Informer(), func(node *corev1.Node, deleted bool) { scheduler.send(ctx, event{node: node, deleted: deleted}) }),
		notify(core.Nodes().Informer(), s.observeNode),
	); err != nil {
		cancel()
		return nil, err
	}
	s.group.Go(func() { scheduler.run(ctx) })
	s.informers.StartWithContext(ctx)
	return s, nil
}

// notify calls the function handle with each version of an object that the informer delivers. After
// the deletion, it calls the function with the last version, and with true for deleted.
func notify[T any](informer cache.SharedIndexInformer, handle func(object *T, deleted bool)) error {
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { handle(object.(*T), false) },
		UpdateFunc: func(_, object any) { handle(object.(*T), false) },
		DeleteFunc: func(object any) {
			if missed, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = missed.Obj
			}
			handle(object.(*T), true)
		},
	})
	return err
}

// Stop stops the scheduler and the kubelets, and waits until they have ended.
func (s *Simulation) Stop() {
	s.cancel()
	s.informers.Shutdown()
	s.group.Wait()
}

// observeNode pauses the kubelet of a deleted node.
func (s *Simulation) observeNode(node *corev1.Node, deleted bool) {
	if !deleted {
		return
	}
	s.kubelets.pause(node.Name)
	if s.options.NodeDeleted != nil {
		s.group.Go(s.options.NodeDeleted)
	}
}

// PauseKubelet makes the kubelet of a node stop changing the node and its pods.
func (s *Simulation) PauseKubelet(node string) { s.kubelets.pause(node) }

// ResumeKubelet undoes [Simulation.PauseKubelet]. The kubelet marks the node as ready, and continues
// to start and stop its pods.
func (s *Simulation) ResumeKubelet(ctx context.Context, node string) error {
	if err := s.markReady(ctx, node); err != nil {
		return err
	}
	s.resume(node)
	return nil
}

// Register creates a node that has been deleted, and resumes its kubelet. If the node exists, perhaps
// because an earlier call failed halfway, Register only marks it as ready.
func (s *Simulation) Register(ctx context.Context, name string) error {
	err := s.createNode(ctx, name)
	if apierrors.IsAlreadyExists(err) {
		err = s.markReady(ctx, name)
	}
	if err != nil {
		return err
	}
	s.resume(name)
	return nil
}

// resume makes the kubelet of a node handle its pods again.
func (s *Simulation) resume(node string) {
	s.kubelets.resume(node)
	for _, object := range s.informers.Core().V1().Pods().Informer().GetStore().List() {
		if pod := object.(*corev1.Pod); pod.Spec.NodeName == node {
			s.observePod(pod, false)
		}
	}
}

// createNode creates a node that is Ready and has room for all pods.
func (s *Simulation) createNode(ctx context.Context, name string) error {
	_, err := s.options.Kubelet.CoreV1().Nodes().Create(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating node %s: %w", name, err)
	}
	if err := s.markReady(ctx, name); err != nil {
		return err
	}
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		node, err := s.options.Kubelet.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		node.Spec.Taints = nil // as kube-controller-manager does when the node is Ready
		_, err = s.options.Kubelet.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("removing the taint of node %s: %w", name, err)
	}
	return nil
}

// markReady sets the condition Ready of a node to True.
func (s *Simulation) markReady(ctx context.Context, name string) error {
	nodes := s.options.Kubelet.CoreV1().Nodes()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		node, err := nodes.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		now := metav1.Now()
		node.Status.Conditions = []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: now, LastTransitionTime: now,
		}}
		_, err = nodes.UpdateStatus(ctx, node, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("updating the status of node %s: %w", name, err)
	}
	return nil
}

// retryInterval is the time between two attempts of a request while the API server does not respond.
const retryInterval = time.Second

// untilAvailable calls the function request until the API server responds or ctx ends. It returns
// the result of the last call.
func untilAvailable(ctx context.Context, request func() error) error {
	for {
		err := request()
		if !cluster.Unavailable(err) {
			return err
		}
		select {
		case <-time.After(retryInterval):
		case <-ctx.Done():
			return err
		}
	}
}

// report logs the error of a request for a pod. It ignores NotFound and Conflict, which occur if
// another client changed or deleted the pod.
func report(ctx context.Context, message string, err error, pod *corev1.Pod) {
	if err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		klog.ErrorS(err, message, "pod", klog.KObj(pod))
	}
}
