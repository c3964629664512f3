package cluster

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Kubelets is a cluster whose kubelets, real or simulated, can be paused and restarted. In each
// method, the argument node is the name of a Node object.
type Kubelets interface {
	// PauseKubelet pauses the kubelet of a node until ResumeKubelet. The containers on the node
	// keep running. After the node-monitor grace period, the node lifecycle controller sets the
	// node's Ready condition to Unknown.
	PauseKubelet(ctx context.Context, node string) error
	// ResumeKubelet resumes a paused kubelet and returns when the node is healthy. If the kubelet
	// is not paused, ResumeKubelet only waits until the node is healthy.
	ResumeKubelet(ctx context.Context, node string) error
	// Register makes a kubelet create its Node object again after a fault has deleted that object.
	// Register returns when the node is healthy. It does not change a Node object that exists.
	Register(ctx context.Context, node string) error
}

// Machines is a cluster whose nodes can lose power and network like physical machines. In each
// method, the argument node is the name of a Node object. Stopping or disconnecting the control
// plane node also stops or disconnects the control plane.
type Machines interface {
	// KillNode stops a node and everything on it immediately, as a power failure does.
	KillNode(ctx context.Context, node string) error
	// StartNode starts a node that KillNode has stopped, and returns when the node is healthy. The
	// kubelet then starts new containers for the pods on the node. If the node is running,
	// StartNode does nothing.
	StartNode(ctx context.Context, node string) error
	// CutOff drops all network packets to and from a node until Reconnect. The processes on the
	// node keep running.
	CutOff(ctx context.Context, node string) error
	// Reconnect undoes CutOff and returns when the node is healthy. If the node's network works,
	// Reconnect does nothing.
	Reconnect(ctx context.Context, node string) error
}

// AwaitNode waits until the named node is healthy (see [NodeHealthy]). AwaitNode gets the Node
// object once per interval. It returns an error if the node is not healthy after the duration
// within.
func AwaitNode(ctx context.Context, c Cluster, name string, interval, within time.Duration) error {
	client, err := kubernetes.NewForConfig(c.Config(Admin))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("node %s was not healthy within %s", name, within))
	defer cancel()
	return Poll(ctx, interval, "node "+name+" to be healthy", func(ctx context.Context) error {
		node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return NodeHealthy(node)
	})
}
