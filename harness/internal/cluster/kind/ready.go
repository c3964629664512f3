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
	// pollInterval is the time between two checks of a condition for which this package waits.
	pollInterval = 100 * time.Millisecond
	// healthTimeout limits the duration of [Cluster.Health].
	healthTimeout = recoveryTimeout
)

// poll calls the function condition until it returns nil or ctx ends. It is [cluster.Poll] with the
// interval pollInterval. If ctx ends, the error contains the description, which says what the
// caller waits for.
func poll(ctx context.Context, description string, condition func(context.Context) error) error {
	return cluster.Poll(ctx, pollInterval, description, condition)
}

// awaitReady configures the pod network and waits until pods can run on all nodes.
//
// awaitReady does not use kind's own wait for Ready nodes, CreateWithWaitForReady. That wait checks
// less and returns no error after a timeout.
func (c *Cluster) awaitReady(ctx context.Context, client kubernetes.Interface, opts Options) error {
	if err := poll(ctx, "the API server to be ready", func(ctx context.Context) error { return apiServerReady(ctx, client) }); err != nil {
		return err
	}
	if err := c.connectPods(ctx, client); err != nil {
		return err
	}
	if err := c.awaitNodes(ctx, client); err != nil {
		return err
	}
	if opts.DNS {
		if err := runDNS(ctx, client); err != nil {
			return err
		}
	}
	if err := removeDeployments(ctx, client); err != nil {
		return err
	}
	// kube-controller-manager creates ServiceAccount default/default, so its existence shows that
	// kube-controller-manager works.
	err := poll(ctx, "ServiceAccount default/default", func(ctx context.Context) error {
		_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	if err != nil {
		return err
	}
	if err := poll(ctx, "the pods of the control plane to be Ready", func(ctx context.Context) error { return componentsReady(ctx, client, servers+","+clients) }); err != nil {
		return err
	}
	if opts.DNS {
		if err := poll(ctx, "CoreDNS to be Ready", func(ctx context.Context) error { return dnsReady(ctx, client) }); err != nil {
			return err
		}
	}
	return c.testPods(ctx, client)
}

// apiServerReady returns nil if the API server's /readyz returns a successful status. Otherwise,
// the error contains the response body, which names the failed checks.
func apiServerReady(ctx context.Context, client kubernetes.Interface) error {
	body, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("the API server is not ready: %w: %s", err, strings.TrimSpace(string(body)))
	}
	return nil
}

// These constants list control plane components, separated by commas. Each name is a value of
// the label "component" of a static pod in kube-system.
const (
	servers = "etcd,kube-apiserver"
	clients = "kube-controller-manager,kube-scheduler"
)

// componentsReady returns nil if the static pods of the given components are Ready. The argument
// parts lists the components, separated by commas; see [clients] for an example. Otherwise, the
// error names a pod that is not Ready, or says how many pods are missing.
func componentsReady(ctx context.Context, client kubernetes.Interface, parts string) error {
	pods, err := client.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{
		LabelSelector: "tier=control-plane,component in (" + parts + ")",
	})
	if err != nil {
		return fmt.Errorf("listing the pods of the control plane: %w", err)
	}
	if want := 1 + strings.Count(parts, ","); len(pods.Items) < want {
		return fmt.Errorf("found %d control plane pods; expected one pod for each of %s", len(pods.Items), parts)
	}
	for i := range pods.Items {
		if pod := &pods.Items[i]; !cluster.PodReady(pod) {
			return fmt.Errorf("pod %s/%s is not Ready: phase %s", pod.Namespace, pod.Name, pod.Status.Phase)
		}
	}
	return nil
}

// awaitNodes waits until every Node object is schedulable; see [cluster.NodeSchedulable].
func (c *Cluster) awaitNodes(ctx context.Context, client kubernetes.Interface) error {
	return poll(ctx, "the nodes to be schedulable", func(ctx context.Context) error {
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

// removeDeployments deletes the Deployments that the node image creates, such as a volume
// provisioner. Otherwise, the controllers under test would create pods for these Deployments during
// a run.
func removeDeployments(ctx context.Context, client kubernetes.Interface) error {
	found, err := client.AppsV1().Deployments(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing the Deployments of the node image: %w", err)
	}
	for _, d := range found.Items {
		err := client.AppsV1().Deployments(d.Namespace).Delete(ctx, d.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting Deployment %s/%s of the node image: %w", d.Namespace, d.Name, err)
		}
	}
	return nil
}

// testPods runs one pod on every node without taints, and then deletes the pods. Only such a test
// shows reliably that the scheduler and the kubelets can start pods.
func (c *Cluster) testPods(ctx context.Context, client kubernetes.Interface) error {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing the nodes of kind cluster %s: %w", c.name, err)
	}
	tests, ctx := errgroup.WithContext(ctx)
	tested := 0
	for i := range nodes.Items {
		node := &nodes.Items[i]
		if len(node.Spec.Taints) > 0 {
			continue
		}
		tested++
		tests.Go(func() error { return testPod(ctx, client, node) })
	}
	if tested == 0 {
		return errors.New("no node is schedulable: all nodes have taints")
	}
	return tests.Wait()
}

// testPod creates a pod on a node, waits until the pod is Ready, and deletes the pod. Its success
// shows that the kubelet of the node can start pods.
func testPod(ctx context.Context, client kubernetes.Interface, node *corev1.Node) (err error) {
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
		return fmt.Errorf("creating test pod %s/%s on node %s: %w", metav1.NamespaceDefault, name, node.Name, err)
	}
	if err := poll(ctx, "the test pod on node "+node.Name+" to be Ready", func(ctx context.Context) error {
		pod, err := pods.Get(ctx, name, metav1.GetOptions{})
		if err == nil && !cluster.PodReady(pod) {
			err = notReadyError(pod)
		}
		return err
	}); err != nil {
		return err
	}
	err = pods.Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})
	if err != nil {
		return fmt.Errorf("deleting test pod %s/%s on node %s: %w", metav1.NamespaceDefault, name, node.Name, err)
	}
	return nil
}

// notReadyError returns an error that says why a pod is not Ready. The reasons are from the pod's
// status, for example why the pod was not scheduled.
func notReadyError(pod *corev1.Pod) error {
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
	return fmt.Errorf("pod %s/%s is %s", pod.Namespace, pod.Name, why)
}

// These constants are the beginnings of the names of two container images that every node image
// contains. In the complete name, the version of the container image follows.
const (
	pauseImage             = "registry.k8s.io/pause:"
	controllerManagerImage = "registry.k8s.io/kube-controller-manager:"
)

// PauseImage returns the name of the pause image that a node already has in its container runtime.
// A container of this image does nothing until it receives SIGTERM.
func PauseImage(node *corev1.Node) (string, error) { return imageOf(node, pauseImage) }

// ControllerManagerImage returns the name of the image in which the cluster's own
// kube-controller-manager runs. The image has no entrypoint, so the container's spec must contain a
// command.
func (c *Cluster) ControllerManagerImage(ctx context.Context) (string, error) {
	client, err := kubernetes.NewForConfig(c.Config(cluster.Admin))
	if err != nil {
		return "", err
	}
	node, err := client.CoreV1().Nodes().Get(ctx, c.nodes[0], metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("reading the images of node %s: %w", c.nodes[0], err)
	}
	return imageOf(node, controllerManagerImage)
}

// imageOf returns the first image name in the Node's status.images that begins with prefix. The
// node already has this image.
func imageOf(node *corev1.Node, prefix string) (string, error) {
	for _, image := range node.Status.Images {
		for _, name := range image.Names {
			if strings.HasPrefix(name, prefix) {
				return name, nil
			}
		}
	}
	return "", fmt.Errorf("node %s has no image %s", node.Name, strings.TrimSuffix(prefix, ":"))
}
