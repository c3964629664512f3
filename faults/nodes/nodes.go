// Package nodes contains the faults of nodes, which also affect the pods on these nodes. A fault
// cordons, drains, taints, stops, disconnects or deletes nodes.
//
// The faults never choose a control-plane node, because its loss would also stop the control
// plane. It would also stop the controllers under test if they run in pods. To stop the control
// plane or the controllers, use the faults of the packages controlplane and processes.
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

// countMax is the largest number of nodes that a scenario may set for one fault.
const countMax = 1000

// countParam documents the parameter "count", which all fault types of this package have.
var countParam = faults.Param{Name: "count", Description: "The number of worker nodes, picked at random among those that are not affected yet. If fewer nodes remain, the fault picks all of them.", Bounds: "1 to 1000", Default: "1"}

// checkCount returns an error unless the argument count is between 1 and countMax. The argument is
// the value of the parameter "count" of a fault.
func checkCount(params faults.Params, count int) error {
	return faults.Between(params, "count", count, 1, countMax)
}

// CountParams contains the parameters of fault types that have only the parameter "count".
type CountParams struct {
	// Count is the number of worker nodes that the fault affects.
	Count int `yaml:"count"`
}

// decodeCount returns the parameters of a fault that has only the parameter "count". If the
// scenario omits this parameter, the result has Count 1. decodeCount returns an error if the
// parameters are invalid.
func decodeCount(params faults.Params) (CountParams, error) {
	p := CountParams{Count: 1}
	if err := params.Decode(&p); err != nil {
		return p, err
	}
	return p, checkCount(params, p.Count)
}

// nodeRef returns a reference to a node, for records of the history.
func nodeRef(name string) *history.Ref { return &history.Ref{Resource: "nodes", Name: name} }

// notGeneratedReason says why generated scenarios do not contain the node faults that delete
// pods.
const notGeneratedReason = "a controller that misses the deletion of a new pod, because its watch ended, waits 5 minutes for its expectations to expire (allowed behavior expired-expectations)"

// state is a condition into which a fault puts nodes, such as cordoned. The fault never picks a
// node that is already in this state.
type state struct {
	description string                  // text for history records, such as "cordoned"
	in          func(*corev1.Node) bool // reports whether a node is in this state
}

// mark is a change of a Node object that keeps new pods off the node: a cordon or a taint. It
// contains one function that makes the change, and one that reverts the change.
type mark struct {
	state
	apply  func(*corev1.Node) // cordons or taints the node
	remove func(*corev1.Node) // reverts the change that apply made
}

// cordoned is the mark that cordons a node: it sets spec.unschedulable to true, as kubectl cordon
// does. To uncordon the node, it sets the field to false again.
var cordoned = mark{
	state:  state{"cordoned", func(n *corev1.Node) bool { return n.Spec.Unschedulable }},
	apply:  func(n *corev1.Node) { n.Spec.Unschedulable = true },
	remove: func(n *corev1.Node) { n.Spec.Unschedulable = false },
}

// markedNodes contains the nodes that a fault has cordoned or tainted. Heal removes the cordon
// or taint from these nodes.
type markedNodes struct {
	mark
	env   *faults.Env
	nodes []string
}

// applyTo cordons or taints random nodes, and returns them. The argument count is the maximum
// number of nodes. If an update fails, applyTo reverts its changes and returns an error.
func (m mark) applyTo(ctx context.Context, env *faults.Env, count int) (*markedNodes, error) {
	nodes, err := m.pick(ctx, env, count)
	if err != nil {
		return nil, err
	}
	all := &markedNodes{mark: m, env: env}
	for _, node := range nodes {
		all.nodes = append(all.nodes, node) // added first: the API server may commit an update that returns an error
		if err := edit(ctx, env, node, m.apply); err != nil {
			return nil, errors.Join(err, all.removeAll(context.WithoutCancel(ctx)))
		}
	}
	return all, nil
}

// removeAll removes the cordon or taint from every marked node. After an error, the caller may
// call removeAll again. It does nothing if m is nil.
func (m *markedNodes) removeAll(ctx context.Context) (err error) {
	if m == nil {
		return nil
	}
	m.nodes, err = forEach(m.nodes, func(node string) error { return edit(ctx, m.env, node, m.remove) })
	return err
}

// forEach calls the callback do for every node, even after an error. It returns the nodes for
// which the callback returned an error, so that the caller can try these nodes again. The error
// joins all errors of the callback.
func forEach(nodes []string, do func(node string) error) (left []string, err error) {
	var all []error
	for _, node := range nodes {
		if err := do(node); err != nil {
			left, all = append(left, node), append(all, err)
		}
	}
	return left, errors.Join(all...)
}

// pick returns the names of random worker nodes that are not yet in the state s. The argument count
// is the number of nodes. If there are fewer such nodes, pick returns all of them. If there is no
// such node, pick returns an error.
func (s state) pick(ctx context.Context, env *faults.Env, count int) ([]string, error) {
	list, err := env.Admin.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing the nodes of the cluster: %w", err)
	}
	names := s.candidates(list.Items)
	if len(names) == 0 {
		return nil, fmt.Errorf("found no worker node that the fault can choose: each of the %d nodes is a control-plane node or is already affected (%s)", len(list.Items), s.description)
	}
	env.Rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	return names[:min(count, len(names))], nil
}

// candidates returns the names of the worker nodes that are not yet in the state s. It sorts the
// names, so that the same seed picks the same nodes in every run.
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

// edit reads the node with the given name, passes the node to the callback change, and updates the
// node. After a conflict, edit repeats all three steps. It does nothing if the node no longer
// exists.
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
		return fmt.Errorf("updating node %s: %w", name, err)
	}
	return nil
}
