package cluster

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Kubelets is a cluster whose kubelets, real or simulated, can be laid hands on.
// Nodes are named as they have registered.
type Kubelets interface {
	// Silence has the kubelet of a node do nothing and report nothing until Wake.
	// What runs there goes on; the node controller finds out after its own time.
	Silence(ctx context.Context, node string) error
	// Wake undoes Silence and returns when the node is well. A kubelet that was
	// never silent is left alone.
	Wake(ctx context.Context, node string) error
	// Register has the kubelet of a node that was deleted register it anew, and
	// returns when it is well. A node that is there is left alone.
	Register(ctx context.Context, node string) error
}

// Machines is a cluster whose nodes can be lost as machines are. Nodes are named as
// they have registered. What runs on the control plane's node goes with it.
type Machines interface {
	// KillNode ends a node at once, as a power cut does, with all that runs there.
	KillNode(ctx context.Context, node string) error
	// StartNode starts a node that was killed, and returns when it is well: its
	// kubelet has its pods again, and their containers begin anew. One that was not
	// killed is left alone.
	StartNode(ctx context.Context, node string) error
	// CutOff has no packet reach a node or leave it, and nobody told so. What runs
	// there goes on.
	CutOff(ctx context.Context, node string) error
	// Reconnect undoes CutOff, and returns when the node is well. One that was not
	// cut off is left alone.
	Reconnect(ctx context.Context, node string) error
}

// AwaitNode looks at every interval, and for no longer than within, until a node is
// well.
func AwaitNode(ctx context.Context, c Cluster, name string, interval, within time.Duration) error {
	client, err := kubernetes.NewForConfig(c.Config(Admin))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("not within %s", within))
	defer cancel()
	return Poll(ctx, interval, "the node "+name, func(ctx context.Context) error {
		node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return NodeHealthy(node)
	})
}
