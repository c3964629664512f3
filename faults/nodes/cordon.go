package nodes

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kube-gauntlet/gauntlet/faults"
)

// Cordon is the kind "node-cordon".
var Cordon = faults.Kind{
	Name:      "node-cordon",
	Sentence:  "Nodes take no more pods; those that they have go on.",
	Healing:   "They take pods again.",
	Providers: faults.OwnClusters,
	Params:    []faults.Param{countParam},
	New: func(params faults.Params) (faults.Fault, error) {
		return newMarking(params, cordoned)
	},
	Undrawn: undrawn,
}

// Taint is the kind "node-taint".
var Taint = faults.Kind{
	Name:      "node-taint",
	Sentence:  "Nodes get a NoExecute taint that no pod of the workload tolerates: their pods are deleted all at once, and none come.",
	Healing:   "The taint is taken away; pods that are gone stay gone.",
	Providers: faults.OwnClusters,
	Params:    []faults.Param{countParam},
	New: func(params faults.Params) (faults.Fault, error) {
		return newMarking(params, tainted)
	},
	Undrawn: undrawn,
}

// taintKey is the taint of [Taint].
const taintKey = "gauntlet/out-of-service"

func isTaint(t corev1.Taint) bool { return t.Key == taintKey }

// tainted is the mark of a node on which no pod may be.
var tainted = mark{
	state: state{"tainted", func(n *corev1.Node) bool { return slices.ContainsFunc(n.Spec.Taints, isTaint) }},
	give: func(n *corev1.Node) {
		if !slices.ContainsFunc(n.Spec.Taints, isTaint) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: taintKey, Effect: corev1.TaintEffectNoExecute})
		}
	},
	take: func(n *corev1.Node) { n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, isTaint) },
}

func newMarking(params faults.Params, m mark) (faults.Fault, error) {
	p, err := decodeCount(params)
	if err != nil {
		return nil, err
	}
	return &marking{params: p, mark: m}, nil
}

// marking is a mark on nodes, until Heal.
type marking struct {
	params CountParams
	mark   mark
	marked *marked
	count  int
}

func (m *marking) Inject(ctx context.Context, env *faults.Env) (err error) {
	if m.marked, err = m.mark.giveTo(ctx, env, m.params.Count); err != nil {
		return err
	}
	m.count = len(m.marked.nodes)
	for _, node := range m.marked.nodes {
		env.Report.Fired(0, nodeRef(node), m.mark.given)
	}
	return nil
}

func (m *marking) Heal(ctx context.Context) error { return m.marked.takeBack(ctx) }

func (m *marking) Tally() string { return fmt.Sprintf("%s %d nodes", m.mark.given, m.count) }
