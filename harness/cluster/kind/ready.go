package kind

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

const (
	// pollInterval is the time between two looks at something not ready yet.
	pollInterval = 100 * time.Millisecond
	// healthWithin bounds the answer to a question for the cluster's health.
	healthWithin = mendWithin
)

func poll(ctx context.Context, what string, look func(context.Context) error) error {
	return cluster.Poll(ctx, pollInterval, what, look)
}

// awaitReady waits until the cluster does what a cluster is for: kind's own wait
// asks less, and only warns.
func (c *Cluster) awaitReady(ctx context.Context, client kubernetes.Interface) error {
	if err := poll(ctx, "the API server", func(ctx context.Context) error { return apiServerReady(ctx, client) }); err != nil {
		return err
	}
	if err := c.connectPods(ctx, client); err != nil {
		return err
	}
	if err := c.awaitNodes(ctx, client); err != nil {
		return err
	}
	if err := removeDeployments(ctx, client); err != nil {
		return err
	}
	// Kept by kube-controller-manager: that it is there shows that one works.
	err := poll(ctx, "the default service account", func(ctx context.Context) error {
		_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	if err != nil {
		return err
	}
	if err := poll(ctx, "the control plane's pods", func(ctx context.Context) error { return componentsReady(ctx, client, servers+","+clients) }); err != nil {
		return err
	}
	return c.tryPods(ctx, client)
}

func apiServerReady(ctx context.Context, client kubernetes.Interface) error {
	answer, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("the API server is not ready: %w: %s", err, strings.TrimSpace(string(answer)))
	}
	return nil
}

// The parts of the control plane, as their static pods are labelled: those that
// serve, and those that only talk to them.
const (
	servers = "etcd,kube-apiserver"
	clients = "kube-controller-manager,kube-scheduler"
)

// componentsReady is nil when the static pods of so many parts, separated by commas,
// are Ready: their probes ask them for their health.
func componentsReady(ctx context.Context, client kubernetes.Interface, parts string) error {
	pods, err := client.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{
		LabelSelector: "tier=control-plane,component in (" + parts + ")",
	})
	if err != nil {
		return fmt.Errorf("asking for the control plane's pods: %w", err)
	}
	if want := 1 + strings.Count(parts, ","); len(pods.Items) < want {
		return fmt.Errorf("%d of %s have registered", len(pods.Items), parts)
	}
	for i := range pods.Items {
		if pod := &pods.Items[i]; !cluster.PodReady(pod) {
			return fmt.Errorf("%s is not Ready: phase %s", pod.Name, pod.Status.Phase)
		}
	}
	return nil
}

// awaitNodes waits until every node takes pods.
func (c *Cluster) awaitNodes(ctx context.Context, client kubernetes.Interface) error {
	return poll(ctx, "the nodes", func(ctx context.Context) error {
		nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range nodes.Items {
			if err := cluster.NodeSchedulable(&nodes.Items[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// removeDeployments removes what a node image brings along (a provisioner of
// volumes): the first subject would bring it up, in the middle of a run.
func removeDeployments(ctx context.Context, client kubernetes.Interface) error {
	found, err := client.AppsV1().Deployments(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("looking for Deployments that the node image brought along: %w", err)
	}
	for _, d := range found.Items {
		err := client.AppsV1().Deployments(d.Namespace).Delete(ctx, d.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("removing the Deployment %s/%s that the node image brought along: %w", d.Namespace, d.Name, err)
		}
	}
	return nil
}

// tryPods runs a pod on every node that takes any, by way of the scheduler, and
// removes it: nothing less shows that pods can start.
func (c *Cluster) tryPods(ctx context.Context, client kubernetes.Interface) error {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("asking for the nodes: %w", err)
	}
	tries, ctx := errgroup.WithContext(ctx)
	tried := 0
	for i := range nodes.Items {
		node := &nodes.Items[i]
		if len(node.Spec.Taints) > 0 {
			continue
		}
		tried++
		tries.Go(func() error { return tryPod(ctx, client, node) })
	}
	if tried == 0 {
		return errors.New("no node takes pods")
	}
	return tries.Wait()
}

func tryPod(ctx context.Context, client kubernetes.Interface, node *corev1.Node) (err error) {
	image, err := PauseImage(node)
	if err != nil {
		return err
	}
	pods := client.CoreV1().Pods(metav1.NamespaceDefault)
	name := "gauntlet-try-" + node.Name
	_, err = pods.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{corev1.LabelHostname: node.Name},
			Containers:   []corev1.Container{{Name: "pause", Image: image, ImagePullPolicy: corev1.PullNever}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating a pod on %s: %w", node.Name, err)
	}
	if err := poll(ctx, "a first pod on "+node.Name, func(ctx context.Context) error {
		pod, err := pods.Get(ctx, name, metav1.GetOptions{})
		if err == nil && !cluster.PodReady(pod) {
			err = notReadyBecause(pod)
		}
		return err
	}); err != nil {
		return err
	}
	err = pods.Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})
	if err != nil {
		return fmt.Errorf("deleting the first pod on %s: %w", node.Name, err)
	}
	return nil
}

// notReadyBecause says what a pod is waiting for, as far as its status tells.
func notReadyBecause(pod *corev1.Pod) error {
	why := string(pod.Status.Phase)
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status != corev1.ConditionTrue {
			why += ", not scheduled: " + condition.Message
		}
	}
	for _, container := range pod.Status.ContainerStatuses {
		if waiting := container.State.Waiting; waiting != nil {
			why += ", " + waiting.Reason + " " + waiting.Message
		}
	}
	return fmt.Errorf("the pod %s is %s", pod.Name, why)
}

// The images that a node brings along, by how their names begin.
const (
	pauseImage             = "registry.k8s.io/pause:"
	controllerManagerImage = "registry.k8s.io/kube-controller-manager:"
)

// PauseImage is the name of an image, there on the node already, whose container
// does nothing until it is told to end.
func PauseImage(node *corev1.Node) (string, error) { return imageOf(node, pauseImage) }

// ControllerManagerImage is the name of the image that the control plane's own
// kube-controller-manager runs from. It has no entrypoint.
func ControllerManagerImage(node *corev1.Node) (string, error) {
	return imageOf(node, controllerManagerImage)
}

func imageOf(node *corev1.Node, prefix string) (string, error) {
	for _, image := range node.Status.Images {
		for _, name := range image.Names {
			if strings.HasPrefix(name, prefix) {
				return name, nil
			}
		}
	}
	return "", fmt.Errorf("the node image of %s holds no %s", node.Name, strings.TrimSuffix(prefix, ":"))
}
