package cluster

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Kubelets is a cluster whose real or simulated kubelets can be paused and restarted.
// The node arguments are names of Node objects.
type Kubelets interface {
	// Silence pauses the kubelet of a node until Wake. Its containers keep running.
	// The node lifecycle controller marks the node NotReady after its grace period.
	Silence(ctx context.Context, node string) error
	// Wake resumes a paused kubelet and returns when the node is healthy. It has no
	// effect on a kubelet that is not paused.
	Wake(ctx context.Context, node string) error
	// Register makes the kubelet of a deleted Node object create the object again, and
	// returns when the node is healthy. It has no effect if the Node object exists.
	Register(ctx context.Context, node string) error
}

// Machines is a cluster whose nodes can lose power and network like physical machines.
// The node arguments are names of Node objects. Stopping or disconnecting the control
// plane node does the same to the control plane.
type Machines interface {
	// KillNode stops a node and everything on it immediately, as a power failure does.
	KillNode(ctx context.Context, node string) error
	// StartNode starts a node that was killed and returns when it is healthy. The
	// kubelet then starts new containers for its pods. It has no effect on a node that
	// was not killed.
	StartNode(ctx context.Context, node string) error
	// CutOff drops all network packets to and from a node until Reconnect. The
	// processes on the node keep running.
	CutOff(ctx context.Context, node string) error
	// Reconnect undoes CutOff and returns when the node is healthy. It has no effect on a
	// node that is not cut off.
	Reconnect(ctx context.Context, node string) error
}

// AwaitNode polls a node at every interval until it is healthy, for at most the given time.
func AwaitNode(ctx context.Context, c Cluster, name string, interval, within time.Duration) error {
	client, err := kubernetes.NewForConfig(c.Config(Admin))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("timed out after %s", within))
	defer cancel()
	return Poll(ctx, interval, "node "+name+" to be healthy", func(ctx context.Context) error {
		node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return NodeHealthy(node)
	})
}
