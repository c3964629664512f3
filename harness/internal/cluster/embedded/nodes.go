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

// podsPerNodeMax is the number of pods for which each node has capacity (status.allocatable.pods).
//
// The kubelet's default is 110. With 110, scenarios with many pods would need a dozen nodes, which
// would test nothing more.
const podsPerNodeMax = 2000

// nodeName is the format of node names, such as node-1. The numbers begin with 1.
const nodeName = "node-%d"

// node returns the Node object of node number i, as a kubelet would register it. The numbers begin
// with 1. KWOK makes the node Ready later.
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

// createNodes creates count Node objects, which KWOK makes Ready, and waits until all nodes are
// schedulable.
func (c *Cluster) createNodes(ctx context.Context, client kubernetes.Interface, count int) error {
	// The API server also creates the namespace kube-node-lease, but possibly too late. If the
	// namespace is missing when KWOK creates the Lease of a node, KWOK waits one second before it
	// retries.
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
	return poll(ctx, "the nodes to be schedulable", func(ctx context.Context) error {
		nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, node := range nodes.Items {
			if err := cluster.NodeSchedulable(&node); err != nil {
				return fmt.Errorf("%w; last lines of the kwok log:\n%s", err, c.logTail("kwok"))
			}
		}
		return nil
	})
}

// create sends a create request until the request succeeds or the object already exists. The
// repetition is necessary because the API server rejects requests until its admission plugins are
// ready.
//
// The argument request is a function that sends the request. The argument object, such as "pod
// default/a", names the object in error messages.
func create(ctx context.Context, object string, request func(context.Context) error) error {
	return poll(ctx, "the API server to create "+object, func(ctx context.Context) error {
		if err := request(ctx); !apierrors.IsAlreadyExists(err) {
			return err
		}
		return nil
	})
}

// awaitDefaultServiceAccount waits until ServiceAccount default/default exists. Without this
// ServiceAccount, the API server rejects pods in namespace default.
//
// kube-controller-manager creates the ServiceAccount. The wait therefore also shows that
// kube-controller-manager works.
func (c *Cluster) awaitDefaultServiceAccount(ctx context.Context, client kubernetes.Interface) error {
	return poll(ctx, "ServiceAccount default/default", func(ctx context.Context) error {
		_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		if err != nil {
			err = fmt.Errorf("%w; last lines of the kube-controller-manager log:\n%s", err, c.logTail("kube-controller-manager"))
		}
		return err
	})
}

// logTail returns the last log lines of the named component. It returns "" if the component was not
// started.
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
