package embedded

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

// podsPerNodeMax is a node's capacity for pods. A kubelet's own 110 would take
// a dozen nodes for the burst scenarios and test nothing more.
const podsPerNodeMax = 2000

// nodeName is how nodes are called, with their number.
const nodeName = "node-%d"

// node is the i-th node, from 1, as a kubelet would register it. KWOK makes it
// Ready.
func node(i int) *corev1.Node {
	name := fmt.Sprintf(nodeName, i)
	resources := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("1k"),
		corev1.ResourceMemory: resource.MustParse("1Ti"),
		corev1.ResourcePods:   *resource.NewQuantity(podsPerNodeMax, resource.DecimalSI),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64", "type": "kwok",
		}},
		Status: corev1.NodeStatus{
			Capacity: resources, Allocatable: resources,
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.64.%d.%d", i/250, i%250+1)},
				{Type: corev1.NodeHostName, Address: name},
			},
			NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "kwok-" + KWOKVersion, OperatingSystem: "linux", Architecture: "amd64"},
		},
	}
}

// awaitNodes creates the nodes and waits until every one is Ready and takes
// pods.
func (c *Cluster) awaitNodes(ctx context.Context, client kubernetes.Interface, count int) error {
	// The API server makes this namespace too, but KWOK, when it is not there
	// for a node's lease, waits a whole second.
	leases := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: corev1.NamespaceNodeLease}}
	err := create(ctx, "namespace "+leases.Name, func(ctx context.Context) error {
		_, err := client.CoreV1().Namespaces().Create(ctx, leases, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	for i := range count {
		node := node(i + 1)
		err := create(ctx, "node "+node.Name, func(ctx context.Context) error {
			_, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
			return err
		})
		if err != nil {
			return err
		}
	}
	return poll(ctx, "the nodes", func(ctx context.Context) error {
		nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, node := range nodes.Items {
			if err := cluster.NodeSchedulable(&node); err != nil {
				return fmt.Errorf("%w; the end of kwok's log:\n%s", err, c.logTail("kwok"))
			}
		}
		return nil
	})
}

// create creates an object as soon as the API server takes it: it refuses until
// its admission plugins are ready. One that is there already will do.
func create(ctx context.Context, what string, do func(context.Context) error) error {
	return poll(ctx, "the API server to take "+what, func(ctx context.Context) error {
		if err := do(ctx); !apierrors.IsAlreadyExists(err) {
			return err
		}
		return nil
	})
}

// awaitDefaultAccounts waits for the service account without which no pod can
// be created in the default namespace: a sign that kube-controller-manager not
// only lives but works.
func (c *Cluster) awaitDefaultAccounts(ctx context.Context, client kubernetes.Interface) error {
	return poll(ctx, "the default service account", func(ctx context.Context) error {
		_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		if err != nil {
			err = fmt.Errorf("%w; the end of kube-controller-manager's log:\n%s", err, c.logTail("kube-controller-manager"))
		}
		return err
	})
}

// logTail is the end of a running component's log.
func (c *Cluster) logTail(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.parts {
		if p.name == name {
			return p.LogTail()
		}
	}
	return ""
}
