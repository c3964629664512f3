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

// NotReady is the fault type node-not-ready: it stops the kubelets of nodes.
var NotReady = faults.Type{
	Name: "node-not-ready",
	Description: "The kubelets of nodes stop. " +
		"The fault marks the nodes and their pods as not ready at once, instead of after the node controller's grace period of 50 s. " +
		"On these nodes, new pods do not start and terminating pods remain. " +
		"The pods of the workload tolerate a lost node for 1 s (the Kubernetes default is 300 s), so the node controller deletes them after one or two seconds, unless all nodes are lost.",
	Healing:            "The kubelets run again. Evicted pods finish terminating.",
	Needs:              []cluster.Capability{cluster.ControlsKubelets},
	Params:             []faults.Param{countParam},
	New:                func(params faults.Params) (faults.Fault, error) { return newLoss(params, kubeletStopped) },
	NotGeneratedReason: notGeneratedReason,
}

// Delete is the fault type node-delete: it deletes nodes, and the workload's pods on these nodes.
var Delete = faults.Type{
	Name: "node-delete",
	Description: "The fault deletes nodes, and their pods with a grace period of 0. " +
		"The pod garbage collector would delete these pods about a minute later.",
	Healing:            "The nodes register again. Deleted pods stay deleted.",
	Needs:              []cluster.Capability{cluster.ControlsKubelets},
	Params:             []faults.Param{countParam},
	New:                func(params faults.Params) (faults.Fault, error) { return newLoss(params, nodeDeleted) },
	NotGeneratedReason: notGeneratedReason,
}

// Stop is the fault type node-stop: it stops the machines of nodes.
var Stop = faults.Type{
	Name: "node-stop",
	Description: "The machines of nodes stop, as in a power failure. The fault marks the nodes and their pods as not ready at once. " +
		"The node controller then evicts the pods as with node-not-ready.",
	Healing:            "The machines start again. The containers of pods that were not evicted are started again, and the pods have new IP addresses.",
	Needs:              []cluster.Capability{cluster.StopsMachines},
	Params:             []faults.Param{countParam},
	New:                func(params faults.Params) (faults.Fault, error) { return newLoss(params, machineStopped) },
	NotGeneratedReason: notGeneratedReason,
}

// CutOff is the fault type node-cut-off: it disconnects nodes from the network.
var CutOff = faults.Type{
	Name: "node-cut-off",
	Description: "Nodes are disconnected from the network. Their pods continue to run but are unreachable. " +
		"The fault marks the nodes and their pods as not ready at once. " +
		"The node controller then evicts the pods as with node-not-ready.",
	Healing:            "The nodes are connected again. Evicted pods finish terminating.",
	Needs:              []cluster.Capability{cluster.StopsMachines},
	Params:             []faults.Param{countParam},
	New:                func(params faults.Params) (faults.Fault, error) { return newLoss(params, nodePartitioned) },
	NotGeneratedReason: notGeneratedReason,
}

// lossMode is a way in which a fault makes nodes fail, such as a stopped kubelet. It contains one
// function that makes a node fail, and one that makes the node work again.
type lossMode struct {
	state
	// lose makes the node with the given name fail. The node may have failed even if lose
	// returns an error, so Heal recovers this node too.
	lose func(context.Context, *faults.Env, string) error
	// recover makes the node with the given name work again, and returns when the node is
	// ready.
	recover func(context.Context, *faults.Env, string) error
}

// notReady reports whether a node is not ready. Faults do not choose a node that is not ready,
// because another fault may have made it fail.
func notReady(n *corev1.Node) bool { return !cluster.Ready(n) }

// These are the ways in which the faults of this file make a node fail, such as a stopped
// kubelet.
var (
	kubeletStopped = lossMode{
		state:   state{"marked not ready", notReady},
		lose:    withNodeMarkedLost(cluster.Kubelets.PauseKubelet),
		recover: withCluster(cluster.Kubelets.ResumeKubelet),
	}
	nodeDeleted = lossMode{
		state:   state{"deleted", notReady},
		lose:    deleteNode,
		recover: withCluster(cluster.Kubelets.Register),
	}
	machineStopped = lossMode{
		state:   state{"stopped", notReady},
		lose:    withNodeMarkedLost(cluster.Machines.KillNode),
		recover: withCluster(cluster.Machines.StartNode),
	}
	nodePartitioned = lossMode{
		state:   state{"disconnected", notReady},
		lose:    withNodeMarkedLost(cluster.Machines.CutOff),
		recover: withCluster(cluster.Machines.Reconnect),
	}
)

// withCluster returns a function for the fields lose and recover of lossMode. The argument do is a
// method of the interface C, for example KillNode of [cluster.Machines].
//
// The returned function calls this method on the test run's cluster. It returns an error if the
// cluster does not implement C.
func withCluster[C any](do func(C, context.Context, string) error) func(context.Context, *faults.Env, string) error {
	return func(ctx context.Context, env *faults.Env, node string) error {
		c, ok := env.Cluster.(C)
		if !ok {
			return fmt.Errorf("node %s: the provider %s cannot stop or recover nodes", node, env.Cluster.Name())
		}
		return do(c, ctx, node)
	}
}

// withNodeMarkedLost returns a function for the field lose of lossMode. The argument do makes the
// node fail, for example by stopping its machine. The returned function calls do and then
// markNodeLost, so that the node and its pods become not ready at once.
func withNodeMarkedLost[C any](do func(C, context.Context, string) error) func(context.Context, *faults.Env, string) error {
	return func(ctx context.Context, env *faults.Env, node string) error {
		if err := withCluster(do)(ctx, env, node); err != nil {
			return err
		}
		return markNodeLost(ctx, env, node)
	}
}

// newLoss returns a fault that makes nodes fail. The argument mode says how, for example by
// stopping the kubelet. newLoss returns an error if a parameter is invalid.
func newLoss(params faults.Params, mode lossMode) (faults.Fault, error) {
	p, err := decodeCount(params)
	if err != nil {
		return nil, err
	}
	return &loss{params: p, mode: mode}, nil
}

// loss is a fault that makes nodes fail, and makes them work again in Heal. The field mode says
// how the nodes fail, for example by a stopped kubelet.
type loss struct {
	params CountParams
	mode   lossMode
	env    *faults.Env
	lost   []string // nodes that Heal must recover
	count  int      // number of nodes that the fault has made fail
}

func (l *loss) Inject(ctx context.Context, env *faults.Env) error {
	l.env = env
	nodes, err := l.mode.pick(ctx, env, l.params.Count)
	if err != nil {
		return err
	}
	for _, node := range nodes {
		l.lost = append(l.lost, node)
		if err := l.mode.lose(ctx, env, node); err != nil {
			return errors.Join(err, l.Heal(context.WithoutCancel(ctx)))
		}
		l.count++
		env.Report.Fired(0, nodeRef(node), l.mode.description)
	}
	return nil
}

func (l *loss) Heal(ctx context.Context) (err error) {
	l.lost, err = forEach(l.lost, func(node string) error { return l.mode.recover(ctx, l.env, node) })
	return err
}

func (l *loss) Summary() string { return faults.Counted(l.count, "node") + " " + l.mode.description }

// markNodeLost sets a node's Ready condition to Unknown, and the Ready condition of the node's
// pods to False.
//
// The node controller would set these conditions only after its grace period. After markNodeLost
// has set them, the node controller taints the node and evicts the pods.
func markNodeLost(ctx context.Context, env *faults.Env, name string) error {
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
		return fmt.Errorf("setting the conditions of node %s: %w", name, err)
	}
	return eachPod(ctx, env, name, func(pod *corev1.Pod) error { return markNotReady(ctx, env, pod) })
}

// markNotReady sets a pod's Ready condition to False. If another client has changed the pod,
// markNotReady returns a conflict error. The caller may ignore a conflict error, because the
// node controller evicts the pod anyway.
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

// deleteNode deletes a node. It also deletes the workload's pods on this node, with a grace
// period of 0.
func deleteNode(ctx context.Context, env *faults.Env, name string) error {
	if err := env.Admin.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("deleting node %s: %w", name, err)
	}
	return eachPod(ctx, env, name, func(pod *corev1.Pod) error {
		return env.Admin.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
			GracePeriodSeconds: ptr.To[int64](0), Preconditions: metav1.NewUIDPreconditions(string(pod.UID)),
		})
	})
}

// eachPod calls the callback do for every workload pod on a node. It returns the first error of
// the callback, and then calls the callback for no further pod. It ignores an error that says that
// the pod has changed or no longer exists.
func eachPod(ctx context.Context, env *faults.Env, node string, do func(*corev1.Pod) error) error {
	list, err := env.Admin.CoreV1().Pods(env.Namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String(),
	})
	if err != nil {
		return fmt.Errorf("listing the pods on node %s: %w", node, err)
	}
	for i := range list.Items {
		pod := &list.Items[i]
		if err := do(pod); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("changing pod %s/%s on node %s: %w", pod.Namespace, pod.Name, node, err)
		}
	}
	return nil
}
