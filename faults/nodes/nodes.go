// Package nodes has the faults that befall nodes, and with them the pods that are
// there: as administrators, and the machines themselves, bring them about.
//
// A node on which the control plane runs is never picked: what became of its
// parts, and of a subject in its pods, would be another fault.
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
)

// countMax is the most nodes that a cluster may have.
const countMax = 1000

// countParam documents how many nodes a fault befalls.
var countParam = faults.Param{Name: "count", Sentence: "How many nodes, picked at random among those that it has not befallen yet; all if they are fewer.", Bounds: "1 to 1000", Default: "1"}

// checkCount is nil when a count is within bounds.
func checkCount(params faults.Params, count int) error {
	if count < 1 || count > countMax {
		return params.Errorf("count", "%d is out of bounds; expected 1 to %d", count, countMax)
	}
	return nil
}

// undrawn is why no generated scenario has these faults.
const undrawn = "what they do to young pods upstream does not survive beside watches that end (trap 40 of harness/check/TRAPS.md)"

// mark is something that a node has or has not, and that keeps pods away.
type mark struct {
	given string // what has happened to a node that got it
	give  func(*corev1.Node)
	take  func(*corev1.Node)
	on    func(*corev1.Node) bool
}

// cordoned is the mark of a node that takes no more pods.
var cordoned = mark{
	given: "cordoned",
	give:  func(n *corev1.Node) { n.Spec.Unschedulable = true },
	take:  func(n *corev1.Node) { n.Spec.Unschedulable = false },
	on:    func(n *corev1.Node) bool { return n.Spec.Unschedulable },
}

// marked is the nodes that a fault has given a mark.
type marked struct {
	mark
	env   *faults.Env
	nodes []string
}

// giveTo picks nodes and gives them the mark. When one fails it is taken from all.
func (m mark) giveTo(ctx context.Context, env *faults.Env, count int) (*marked, error) {
	nodes, err := m.pick(ctx, env, count)
	if err != nil {
		return nil, err
	}
	all := &marked{mark: m, env: env}
	for _, node := range nodes {
		all.nodes = append(all.nodes, node) // or it may have it, should the answer be an error
		if err := edit(ctx, env, node, m.give); err != nil {
			return nil, errors.Join(err, all.takeBack(context.WithoutCancel(ctx)))
		}
	}
	return all, nil
}

// takeBack takes the mark from every node. It may be called again for what failed,
// and when there are none.
func (m *marked) takeBack(ctx context.Context) error {
	if m == nil {
		return nil
	}
	var all []error
	m.nodes = slices.DeleteFunc(m.nodes, func(node string) bool {
		err := edit(ctx, m.env, node, m.take)
		all = append(all, err)
		return err == nil
	})
	return errors.Join(all...)
}

// pick draws nodes that do not have the mark.
func (m mark) pick(ctx context.Context, env *faults.Env, count int) ([]string, error) {
	list, err := env.Admin.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing the nodes: %w", err)
	}
	names := m.candidates(list.Items)
	if len(names) == 0 {
		return nil, fmt.Errorf("none of %d nodes can be %s; expected a worker that is not so yet", len(list.Items), m.given)
	}
	env.Rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	return names[:min(count, len(names))], nil
}

// candidates are the names of the nodes that may be picked, in their order, so
// that a draw among them means the same in every run.
func (m mark) candidates(nodes []corev1.Node) []string {
	var names []string
	for i := range nodes {
		n := &nodes[i]
		if _, controlPlane := n.Labels["node-role.kubernetes.io/control-plane"]; !controlPlane && !m.on(n) {
			names = append(names, n.Name)
		}
	}
	slices.Sort(names)
	return names
}

// edit changes a node. One that is gone is left so.
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
		return fmt.Errorf("changing the node %s: %w", name, err)
	}
	return nil
}
