package nodes

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// Cordon is the fault type node-cordon: it makes nodes unschedulable.
var Cordon = faults.Type{
	Name:        "node-cordon",
	Description: "The fault cordons nodes: the scheduler assigns no new pods to them. Their pods continue to run.",
	Healing:     "The fault uncordons the nodes.",
	Needs:       []cluster.Capability{cluster.OwnsControlPlane},
	Params:      []faults.Param{countParam},
	New:         newCordon,
	Sample:      sampleCordon,
}

// Taint is the fault type node-taint: it adds a taint to nodes.
var Taint = faults.Type{
	Name: "node-taint",
	Description: "The fault adds to nodes a taint that no pod of the workload tolerates. The scheduler then assigns no new pods to these nodes. " +
		"With the effect NoExecute, the pods on the nodes are deleted.",
	Healing: "The fault removes the taint. Deleted pods stay deleted.",
	Needs:   []cluster.Capability{cluster.OwnsControlPlane},
	Params: []faults.Param{
		countParam,
		{Name: "effect", Description: "The effect of the taint.", Bounds: "one of " + strings.Join(effects, ", "), Default: effects[0]},
	},
	New:    newTaint,
	Sample: sampleTaint,
}

// TaintParams contains the parameters that a scenario sets for a node-taint fault. The Params
// field of [Taint] documents each parameter.
type TaintParams struct {
	Count  int    `yaml:"count"`
	Effect string `yaml:"effect"`
}

// effects lists the permitted values of [TaintParams.Effect], such as NoSchedule.
var effects = []string{string(corev1.TaintEffectNoExecute), string(corev1.TaintEffectNoSchedule)}

// taintKey is the key of the taint that a node-taint fault adds to nodes. To heal, the fault
// removes the taints with this key.
const taintKey = "gauntlet/out-of-service"

// isTaint reports whether a node-taint fault has added the taint t. Such a taint has the key
// taintKey.
func isTaint(t corev1.Taint) bool { return t.Key == taintKey }

// tainted returns a mark that adds a taint with the given effect, such as NoSchedule, to a node.
// A mark is a change of a node that keeps new pods off the node.
func tainted(effect corev1.TaintEffect) mark {
	return mark{
		state: state{"tainted " + string(effect), func(n *corev1.Node) bool { return slices.ContainsFunc(n.Spec.Taints, isTaint) }},
		apply: func(n *corev1.Node) {
			if !slices.ContainsFunc(n.Spec.Taints, isTaint) {
				n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: taintKey, Effect: effect})
			}
		},
		remove: func(n *corev1.Node) { n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, isTaint) },
	}
}

// newTaint returns a node-taint fault with the given parameters, or an error if a parameter
// is invalid.
func newTaint(params faults.Params) (faults.Fault, error) {
	p := TaintParams{Count: 1, Effect: effects[0]}
	if err := params.Decode(&p); err != nil {
		return nil, err
	}
	if err := scenario.JoinErrors(faults.OneOf(params, "effect", p.Effect, effects), checkCount(params, p.Count)); err != nil {
		return nil, err
	}
	return &marking{wanted: p.Count, mark: tainted(corev1.TaintEffect(p.Effect))}, nil
}

// newCordon returns a node-cordon fault with the given parameters, or an error if a
// parameter is invalid.
func newCordon(params faults.Params) (faults.Fault, error) {
	p, err := decodeCount(params)
	if err != nil {
		return nil, err
	}
	return &marking{wanted: p.Count, mark: cordoned}, nil
}

// sampleCountMax is the maximum number of nodes that a fault in a generated scenario affects.
const sampleCountMax = 4

// sampleCordon returns random parameters of a node-cordon fault, for a generated scenario.
func sampleCordon(r *rand.Rand, _ faults.SampleInput) any {
	return &CountParams{Count: 1 + r.IntN(sampleCountMax)}
}

// sampleTaint returns random parameters of a node-taint fault, for a generated scenario. It never
// draws the effect NoExecute, which deletes pods; see [notGeneratedReason].
func sampleTaint(r *rand.Rand, _ faults.SampleInput) any {
	return &TaintParams{Count: 1 + r.IntN(sampleCountMax), Effect: string(corev1.TaintEffectNoSchedule)}
}

// marking is a fault of type node-cordon or node-taint. It cordons or taints nodes until
// Heal.
type marking struct {
	wanted int // number of nodes that the fault should cordon or taint
	mark   mark
	marked *markedNodes
	count  int // number of nodes that the fault cordoned or tainted, for the summary
}

func (m *marking) Inject(ctx context.Context, env *faults.Env) (err error) {
	if m.marked, err = m.mark.applyTo(ctx, env, m.wanted); err != nil {
		return err
	}
	m.count = len(m.marked.nodes)
	for _, node := range m.marked.nodes {
		env.Report.Fired(0, nodeRef(node), m.mark.description)
	}
	return nil
}

func (m *marking) Heal(ctx context.Context) error { return m.marked.removeAll(ctx) }

func (m *marking) Summary() string { return faults.Counted(m.count, "node") + " " + m.mark.description }
