package cluster

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Kubelets is a cluster whose real or simulated kubelets can be paused and restarted. The argument
// node of each method is the name of a Node object.
type Kubelets interface {
	// PauseKubelet pauses the kubelet of a node until ResumeKubelet. The containers on the node
	// keep running. The node lifecycle controller sets the Ready condition of the node to Unknown
	// when the node-monitor grace period is over.
	PauseKubelet(ctx context.Context, node string) error
	// ResumeKubelet resumes a paused kubelet and returns when the node is healthy. It does not
	// change a kubelet that is not paused.
	ResumeKubelet(ctx context.Context, node string) error
	// Register makes a kubelet register its node again after the Node object was deleted. It
	// returns when the node is healthy. It does not change a Node object that exists.
	Register(ctx context.Context, node string) error
}

// Machines is a cluster whose nodes can lose power and network like physical machines. The argument
// node of each method is the name of a Node object. A method that stops or disconnects the control
// plane node also stops or disconnects the control plane.
type Machines interface {
	// KillNode stops a node and everything on it immediately, as a power failure does.
	KillNode(ctx context.Context, node string) error
	// StartNode starts a node that KillNode has stopped, and returns when the node is healthy. The
	// kubelet of the node then starts new containers for its pods. StartNode does not change a node
	// that runs.
	StartNode(ctx context.Context, node string) error
	// CutOff drops all network packets to and from a node until Reconnect. The processes on the
	// node keep running.
	CutOff(ctx context.Context, node string) error
	// Reconnect undoes CutOff and returns when the node is healthy. It does not change a node whose
	// network works.
	Reconnect(ctx context.Context, node string) error
}

// AwaitNode waits until a node is healthy (see [NodeHealthy]). It gets the Node object once per
// interval. It returns an error if the node is not healthy before the timeout, the argument within.
func AwaitNode(ctx context.Context, c Cluster, name string, interval, within time.Duration) error {
	client, err := kubernetes.NewForConfig(c.Config(Admin))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("the node was not healthy within %s", within))
	defer cancel()
	return Poll(ctx, interval, "node "+name+" to be healthy", func(ctx context.Context) error {
		node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return NodeHealthy(node)
	})
}
