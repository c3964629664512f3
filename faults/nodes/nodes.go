// Package nodes contains the faults of nodes and of the pods on them. Nodes are cordoned,
// drained, tainted or lost.
//
// The faults never pick a control-plane node. Its loss would also affect the control plane
// and a subject that runs in pods. Other faults affect these (packages controlplane and
// processes).
package nodes

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// countMax is the maximum of the parameter count.
const countMax = 1000

// countParam documents the parameter count.
var countParam = faults.Param{Name: "count", Description: "The number of worker nodes, picked at random among those that are not affected yet. If fewer remain, all of them.", Bounds: "1 to 1000", Default: "1"}

// checkCount returns an error if count is out of bounds.
func checkCount(params faults.Params, count int) error {
	if count < 1 || count > countMax {
		return params.Errorf("count", "%d is out of bounds; expected 1 to %d", count, countMax)
	}
	return nil
}

// CountParams are the parameters of the fault types whose only parameter is count.
type CountParams struct {
	Count int `yaml:"count"`
}

func decodeCount(params faults.Params) (CountParams, error) {
	p := CountParams{Count: 1}
	if err := params.Decode(&p); err != nil {
		return p, err
	}
	return p, checkCount(params, p.Count)
}

func nodeRef(name string) *history.Ref { return &history.Ref{Resource: "nodes", Name: name} }

// notGeneratedReason says why generated scenarios do not contain the fault types that
// delete pods.
const notGeneratedReason = "a controller that misses the deletion of a new pod, because its watch ended, waits 5 minutes for its expectations to expire (allowed behavior expired-expectations)"

// state is a condition of a node, such as cordoned. A fault picks only nodes that are
// not yet in its state.
type state struct {
	description string // a past participle for records, such as "cordoned"
	in          func(*corev1.Node) bool
}

// mark is a state that a fault causes by a change to the Node object. A marked node
// gets no new pods from the scheduler.
type mark struct {
	state
	apply  func(*corev1.Node)
	remove func(*corev1.Node)
}

// cordoned is the mark of an unschedulable node.
var cordoned = mark{
	state:  state{"cordoned", func(n *corev1.Node) bool { return n.Spec.Unschedulable }},
	apply:  func(n *corev1.Node) { n.Spec.Unschedulable = true },
	remove: func(n *corev1.Node) { n.Spec.Unschedulable = false },
}

// markedNodes are the nodes that a fault has marked and must restore in Heal.
type markedNodes struct {
	mark
	env   *faults.Env
	nodes []string
}

// applyTo picks nodes and marks them. If one update fails, applyTo removes the mark
// from all picked nodes.
func (m mark) applyTo(ctx context.Context, env *faults.Env, count int) (*markedNodes, error) {
	nodes, err := m.pick(ctx, env, count)
	if err != nil {
		return nil, err
	}
	all := &markedNodes{mark: m, env: env}
	for _, node := range nodes {
		all.nodes = append(all.nodes, node) // appended first: a failed update may have been committed
		if err := edit(ctx, env, node, m.apply); err != nil {
			return nil, errors.Join(err, all.removeAll(context.WithoutCancel(ctx)))
		}
	}
	return all, nil
}

// removeAll removes the mark from every node. It may be called again after an error, and
// without nodes.
func (m *markedNodes) removeAll(ctx context.Context) (err error) {
	if m == nil {
		return nil
	}
	m.nodes, err = forEach(m.nodes, func(node string) error { return edit(ctx, m.env, node, m.remove) })
	return err
}

// forEach calls do for every node and returns the nodes for which do failed. The
// caller can retry these nodes.
func forEach(nodes []string, do func(node string) error) (left []string, err error) {
	var all []error
	for _, node := range nodes {
		if err := do(node); err != nil {
			left, all = append(left, node), append(all, err)
		}
	}
	return left, errors.Join(all...)
}

// pick draws random nodes that are not in the state.
func (s state) pick(ctx context.Context, env *faults.Env, count int) ([]string, error) {
	list, err := env.Admin.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing the nodes: %w", err)
	}
	names := s.candidates(list.Items)
	if len(names) == 0 {
		return nil, fmt.Errorf("each worker node among %d nodes is already %s; expected at least one that is not", len(list.Items), s.description)
	}
	env.Rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	return names[:min(count, len(names))], nil
}

// candidates returns the names of the nodes that may be picked. They are sorted, so that the
// same seed picks the same nodes in every run.
func (s state) candidates(nodes []corev1.Node) []string {
	var names []string
	for i := range nodes {
		n := &nodes[i]
		if _, controlPlane := n.Labels["node-role.kubernetes.io/control-plane"]; !controlPlane && !s.in(n) {
			names = append(names, n.Name)
		}
	}
	slices.Sort(names)
	return names
}

// edit updates a node. It ignores a deleted node.
func edit(ctx context.Context, env *faults.Env, name string, change func(*corev1.Node)) error {
	nodes := env.Admin.CoreV1().Nodes()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		node, err := nodes.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(node)
		_, err = nodes.Update(ctx, node, metav1.UpdateOptions{})
		return err
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("updating nodes %s: %w", name, err)
	}
	return nil
}
