package nodes

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

// NotReady is the kind "node-not-ready".
var NotReady = faults.Type{
	Name:               "node-not-ready",
	Description:        "The kubelets of nodes fall silent, and the nodes and their pods count as not ready, at once and not after the node controller's patience of 50 s. What is deleted there stays, and what is new does not start; a second or two later the workload's pods are evicted, unless all nodes are lost.",
	Healing:            "The kubelets go on; pods that were evicted go.",
	Providers:          faults.OwnClusters,
	Params:             []faults.Param{countParam},
	New:                func(params faults.Params) (faults.Fault, error) { return newLoss(params, silence) },
	NotGeneratedReason: undrawn,
}

// Delete is the kind "node-delete".
var Delete = faults.Type{
	Name:               "node-delete",
	Description:        "Nodes are deleted, and their pods with them, without grace, as the pod garbage collector does it, but at once and not after its minute.",
	Healing:            "The nodes register again; pods that are gone stay gone.",
	Providers:          faults.OwnClusters,
	Params:             []faults.Param{countParam},
	New:                func(params faults.Params) (faults.Fault, error) { return newLoss(params, removal) },
	NotGeneratedReason: undrawn,
}

// Stop is the kind "node-stop".
var Stop = faults.Type{
	Name:               "node-stop",
	Description:        "The machines of nodes stop, as in a power cut, with all that runs there, and the nodes and their pods count as not ready, at once as with a node-not-ready, with the evictions that follow.",
	Healing:            "They start again; containers of pods that were not evicted begin anew, at other addresses.",
	Providers:          machines,
	Params:             []faults.Param{countParam},
	New:                func(params faults.Params) (faults.Fault, error) { return newLoss(params, powerCut) },
	NotGeneratedReason: undrawn,
}

// CutOff is the kind "node-cut-off".
var CutOff = faults.Type{
	Name:               "node-cut-off",
	Description:        "Nodes are cut off from the network: what runs there goes on, out of reach, and the nodes and their pods count as not ready, at once as with a node-not-ready, with the evictions that follow.",
	Healing:            "Packets pass again; pods that were evicted go.",
	Providers:          machines,
	Params:             []faults.Param{countParam},
	New:                func(params faults.Params) (faults.Fault, error) { return newLoss(params, partition) },
	NotGeneratedReason: undrawn,
}

// machines are the providers whose nodes can be lost as machines are.
var machines = []string{faults.Kubelets}

// way is a way for a node to be lost.
type way struct {
	state
	// lose brings it about. After an error it may have come about all the same.
	lose func(context.Context, *faults.Env, string) error
	// back undoes it, and returns when the node is well.
	back func(context.Context, *faults.Env, string) error
}

// out is the state of a node of which nothing can be expected: lost in one way it
// is not lost in another.
func out(n *corev1.Node) bool { return !cluster.Ready(n) }

var (
	silence = way{
		state: state{"made not ready", out},
		lose:  unheard(cluster.Kubelets.Silence),
		back:  on(cluster.Kubelets.Wake),
	}
	removal = way{
		state: state{"deleted", out},
		lose:  remove,
		back:  on(cluster.Kubelets.Register),
	}
	powerCut = way{
		state: state{"stopped", out},
		lose:  unheard(cluster.Machines.KillNode),
		back:  on(cluster.Machines.StartNode),
	}
	partition = way{
		state: state{"cut off", out},
		lose:  unheard(cluster.Machines.CutOff),
		back:  on(cluster.Machines.Reconnect),
	}
)

// on does something to a node that not every cluster can.
func on[C any](do func(C, context.Context, string) error) func(context.Context, *faults.Env, string) error {
	return func(ctx context.Context, env *faults.Env, node string) error {
		c, ok := env.Cluster.(C)
		if !ok {
			return fmt.Errorf("the nodes of a cluster of %s are out of reach", env.Cluster.Name())
		}
		return do(c, ctx, node)
	}
}

// unheard does something to a node after which nothing is heard of it, and has it
// known.
func unheard[C any](do func(C, context.Context, string) error) func(context.Context, *faults.Env, string) error {
	return func(ctx context.Context, env *faults.Env, node string) error {
		if err := on(do)(ctx, env, node); err != nil {
			return err
		}
		return presumeLost(ctx, env, node)
	}
}

func newLoss(params faults.Params, by way) (faults.Fault, error) {
	p, err := decodeCount(params)
	if err != nil {
		return nil, err
	}
	return &loss{params: p, way: by}, nil
}

// loss is nodes that are lost, until Heal.
type loss struct {
	params CountParams
	way    way
	env    *faults.Env
	lost   []string
	count  int
}

func (l *loss) Inject(ctx context.Context, env *faults.Env) error {
	l.env = env
	nodes, err := l.way.pick(ctx, env, l.params.Count)
	if err != nil {
		return err
	}
	for _, node := range nodes {
		l.lost = append(l.lost, node)
		if err := l.way.lose(ctx, env, node); err != nil {
			return errors.Join(err, l.Heal(context.WithoutCancel(ctx)))
		}
		l.count++
		env.Report.Fired(0, nodeRef(node), l.way.given)
	}
	return nil
}

func (l *loss) Heal(ctx context.Context) (err error) {
	l.lost, err = each(l.lost, func(node string) error { return l.way.back(ctx, l.env, node) })
	return err
}

func (l *loss) Summary() string { return fmt.Sprintf("%s %d nodes", l.way.given, l.count) }

// presumeLost writes what the node controller writes once it has not heard of a node
// for long enough: it is not known how the node is, and its pods are not ready. The
// taints and the evictions that follow are the node controller's own.
func presumeLost(ctx context.Context, env *faults.Env, name string) error {
	nodes := env.Admin.CoreV1().Nodes()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		node, err := nodes.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for i := range node.Status.Conditions {
			if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady {
				c.Status, c.Reason = corev1.ConditionUnknown, "NodeStatusUnknown"
				c.Message = "Kubelet stopped posting node status."
				c.LastTransitionTime = metav1.NewTime(env.Clock.Now())
			}
		}
		_, err = nodes.UpdateStatus(ctx, node, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("writing that nothing is heard of the node %s: %w", name, err)
	}
	return eachPod(ctx, env, name, func(pod *corev1.Pod) error { return markNotReady(ctx, env, pod) })
}

// markNotReady leaves a pod that changes meanwhile alone: it will be evicted.
func markNotReady(ctx context.Context, env *faults.Env, pod *corev1.Pod) error {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			c.Status, c.LastTransitionTime = corev1.ConditionFalse, metav1.NewTime(env.Clock.Now())
			_, err := env.Admin.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
			return err
		}
	}
	return nil
}

// remove deletes a node and whatever pods of the run are on it.
func remove(ctx context.Context, env *faults.Env, name string) error {
	if err := env.Admin.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("deleting the node %s: %w", name, err)
	}
	return eachPod(ctx, env, name, func(pod *corev1.Pod) error {
		return env.Admin.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
			GracePeriodSeconds: ptr.To[int64](0), Preconditions: metav1.NewUIDPreconditions(string(pod.UID)),
		})
	})
}

// eachPod does something to every pod of the run that is on a node, if it is still
// there and as it was.
func eachPod(ctx context.Context, env *faults.Env, node string, do func(*corev1.Pod) error) error {
	list, err := env.Admin.CoreV1().Pods(env.Namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String(),
	})
	if err != nil {
		return fmt.Errorf("listing the pods on %s: %w", node, err)
	}
	for i := range list.Items {
		pod := &list.Items[i]
		if err := do(pod); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("the pod %s on %s: %w", pod.Name, node, err)
		}
	}
	return nil
}
