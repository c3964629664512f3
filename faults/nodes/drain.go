package nodes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// Drain is the fault type node-drain: the fault cordons nodes and evicts the pods on these
// nodes.
var Drain = faults.Type{
	Name: "node-drain",
	Description: "The fault drains nodes like kubectl drain: it cordons them and evicts the workload's pods that have a controller. " +
		"A PodDisruptionBudget can refuse an eviction.",
	Healing: "The fault stops evicting pods and uncordons the nodes. Evicted pods stay deleted.",
	Needs:   []cluster.Capability{cluster.OwnsControlPlane},
	Params: []faults.Param{
		countParam,
		{Name: "patience", Description: "The time for which the fault retries evictions that a PodDisruptionBudget refuses.", Bounds: "0s to 1h", Default: "30s"},
	},
	New:                newDrain,
	NotGeneratedReason: notGeneratedReason,
}

// DrainParams contains the parameters that a scenario sets for a node-drain fault. The Params
// field of [Drain] documents each parameter.
type DrainParams struct {
	Count    int           `yaml:"count"`
	Patience time.Duration `yaml:"patience"`
}

const (
	patienceDefault = 30 * time.Second
	patienceMax     = time.Hour
	// drainInterval is the time between two rounds of evictions.
	drainInterval = 200 * time.Millisecond
)

// newDrain returns a node-drain fault with the given parameters, or an error if a parameter
// is invalid.
func newDrain(params faults.Params) (faults.Fault, error) {
	p := DrainParams{Count: 1, Patience: patienceDefault}
	if err := params.Decode(&p); err != nil {
		return nil, err
	}
	if err := scenario.JoinErrors(checkCount(params, p.Count), faults.Between(params, "patience", p.Patience, 0, patienceMax)); err != nil {
		return nil, err
	}
	return &drain{params: p}, nil
}

// drain is a fault of type node-drain. It cordons nodes and evicts the pods on these nodes.
type drain struct {
	params DrainParams
	env    *faults.Env
	marked *markedNodes
	faults.Background
	evicted atomic.Int64 // number of evicted pods
}

func (d *drain) Inject(ctx context.Context, env *faults.Env) (err error) {
	d.env = env
	if d.marked, err = cordoned.applyTo(ctx, env, d.params.Count); err != nil {
		return err
	}
	nodes := slices.Clone(d.marked.nodes)
	d.Begin(ctx, func(ctx context.Context) { d.run(ctx, nodes) })
	return nil
}

func (d *drain) Heal(ctx context.Context) error {
	if err := d.End(ctx); err != nil {
		return fmt.Errorf("waiting until the current eviction of a pod has ended: %w", err)
	}
	return d.marked.removeAll(ctx)
}

func (d *drain) Summary() string { return "evicted " + faults.Counted(int(d.evicted.Load()), "pod") }

// run evicts the pods on the nodes in rounds.
//
// It ends after a round in which the API server granted every eviction. It also ends after the
// time d.params.Patience, or when the fault is healed.
func (d *drain) run(ctx context.Context, nodes []string) {
	ticker := d.env.Clock.NewTicker(drainInterval)
	defer ticker.Stop()
	for begun := d.env.Clock.Now(); ; {
		left, err := d.round(ctx, nodes)
		switch {
		case err == nil && left == 0:
			return
		case d.env.Clock.Since(begun) >= d.params.Patience:
			if err == nil {
				err = fmt.Errorf("%s on nodes %s not evicted within %s, because a PodDisruptionBudget refused the evictions", faults.Counted(left, "pod"), strings.Join(nodes, ", "), d.params.Patience)
			}
			d.env.Report.Failed(nil, err)
			return
		}
		select {
		case <-d.Stopping():
			return
		case <-ticker.C():
		}
	}
}

// round tries once to evict each pod on the nodes. It returns how many evictions the API server
// refused because of a PodDisruptionBudget. The error joins all other errors of evictions.
func (d *drain) round(ctx context.Context, nodes []string) (refused int, err error) {
	list, err := d.env.Admin.CoreV1().Pods(d.env.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, fmt.Errorf("listing the pods of namespace %s: %w", d.env.Namespace, err)
	}
	var all []error
	for _, pod := range evictable(list.Items, nodes) {
		select {
		case <-d.Stopping():
			return 0, nil
		default:
		}
		ref := &history.Ref{Resource: "pods", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}
		err := d.env.Admin.CoreV1().Pods(pod.Namespace).EvictV1(ctx, &policyv1.Eviction{
			ObjectMeta:    metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace},
			DeleteOptions: &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))},
		})
		switch {
		case err == nil:
			d.evicted.Add(1)
			d.env.Report.Fired(0, ref, "evicted from "+pod.Spec.NodeName)
		case apierrors.IsTooManyRequests(err):
			refused++
		case !apierrors.IsNotFound(err) && !apierrors.IsConflict(err): // a missing or replaced pod is no error
			all = append(all, fmt.Errorf("evicting %s: %w", ref, err))
		}
	}
	return refused, errors.Join(all...)
}

// evictable returns the pods that a drain of the given nodes evicts, sorted by name. It omits
// terminating pods and pods without a controllerRef, because a drain does not evict them.
func evictable(pods []corev1.Pod, nodes []string) []*corev1.Pod {
	var all []*corev1.Pod
	for i := range pods {
		p := &pods[i]
		if slices.Contains(nodes, p.Spec.NodeName) && p.DeletionTimestamp == nil && metav1.GetControllerOf(p) != nil {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return all
}
