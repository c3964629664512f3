// Package pods contains the faults that change pods, as users, nodes and kubelets do. The
// requests of these faults bypass the fault proxy.
package pods

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// Churn is the fault type pod-churn: at a regular interval, the fault deletes, fails or
// otherwise changes a random pod.
var Churn = faults.Type{
	Name: "pod-churn",
	Description: "At a regular interval, the fault performs an action on a random active pod of the workload. " +
		"A pod is active if it is not terminating and its phase is neither Succeeded nor Failed.",
	Healing: "The fault stops acting on pods. It makes the pods ready again that it made unready, and removes the finalizers that it added. Deleted, Failed and Succeeded pods are not restored.",
	Params: []faults.Param{
		{Name: "action", Description: "The action on the pod. delete: delete the pod. evict: create an Eviction. fail: set the phase Failed and not ready; on a real kubelet, set activeDeadlineSeconds to 1. collapse: set the phase Failed and leave the Ready condition True, as no real kubelet does. succeed: set the phase Succeeded and not ready. unready: make the pod not ready until a later interval. restart: restart its containers, at most twice for each pod; the pod is not ready meanwhile. linger: delete the pod with a finalizer, which is removed at a later interval.", Bounds: "one of " + strings.Join(churnActions, ", ") + "; collapse and succeed only with simulated kubelets; unready and restart only on clusters that gauntlet creates"},
		{Name: "selector", Description: "A label selector for the pods.", Bounds: "a label selector, such as app=web", Default: "all pods of the namespace"},
		{Name: "every", Description: "The time between actions.", Bounds: "10ms to 1h", Default: "1s"},
		{Name: "gracePeriodSeconds", Description: "The grace period of a delete, in seconds.", Bounds: "0 to 3600; only with action delete", Default: "the pod's terminationGracePeriodSeconds"},
		{Name: "downtime", Description: "The minimum time for which a pod stays not ready, or keeps the finalizer.", Bounds: "10ms to 1h; only with action unready, restart or linger", Default: "500ms"},
		{Name: "times", Description: "The maximum number of actions.", Bounds: "0 to 1000000", Default: "0 (no limit)"},
		{Name: "orphans", Description: "Whether the fault also acts on pods without a controllerRef.", Bounds: "true or false", Default: "false"},
	},
	New:    NewChurn,
	Sample: sampleChurn,
}

// ChurnParams contains the parameters that a scenario sets for a pod-churn fault. The Params
// field of [Churn] documents each parameter.
type ChurnParams struct {
	Action             string         `yaml:"action"`
	Selector           string         `yaml:"selector"`
	Every              time.Duration  `yaml:"every"`
	GracePeriodSeconds *int64         `yaml:"gracePeriodSeconds"`
	Downtime           *time.Duration `yaml:"downtime"`
	Times              int            `yaml:"times"`
	Orphans            bool           `yaml:"orphans"`
}

const (
	everyMin              = 10 * time.Millisecond
	everyMax              = time.Hour
	everyDefault          = time.Second
	downtimeDefault       = 500 * time.Millisecond
	timesMax              = 1_000_000
	gracePeriodSecondsMax = 3600
)

// NewChurn returns a pod-churn fault with the given parameters, or an error if a parameter
// is invalid.
func NewChurn(params faults.Params) (faults.Fault, error) {
	p := ChurnParams{Every: everyDefault}
	if err := params.Decode(&p); err != nil {
		return nil, err
	}
	if err := p.validate(params); err != nil {
		return nil, err
	}
	return &churn{
		action: p.Action, targets: p.targets(), orphans: p.Orphans,
		grace: p.GracePeriodSeconds, downtime: ptr.Deref(p.Downtime, downtimeDefault),
	}, nil
}

// targets returns which pods the fault changes, and how often.
func (p *ChurnParams) targets() Targets {
	return Targets{Selector: p.Selector, Every: p.Every, Times: p.Times}
}

// validate returns an error for each invalid parameter, with its position in the scenario. It
// returns nil if all parameters are valid.
func (p *ChurnParams) validate(params faults.Params) error {
	targets := p.targets()
	action := faults.OneOf(params, "action", p.Action, churnActions)
	errs := []error{action, targets.validate(params)}
	switch down := p.Downtime; {
	case down != nil && action == nil && actions[p.Action].undo == nil:
		errs = append(errs, params.Errorf("downtime", "only permitted with action %s, %s or %s; found action %s", actionUnready, actionRestart, actionLinger, p.Action))
	case down != nil:
		errs = append(errs, faults.Between(params, "downtime", *down, everyMin, everyMax))
	}
	switch grace := p.GracePeriodSeconds; {
	case grace != nil && action == nil && p.Action != actionDelete:
		errs = append(errs, params.Errorf("gracePeriodSeconds", "only permitted with action %s; found action %s", actionDelete, p.Action))
	case grace != nil:
		errs = append(errs, faults.Between(params, "gracePeriodSeconds", *grace, 0, gracePeriodSecondsMax))
	}
	return scenario.JoinErrors(errs...)
}

// churn is a fault of type pod-churn, pod-relabel or pod-disown. At a regular interval, it
// performs one action, such as delete, on one pod.
type churn struct {
	action   string // name of the action, such as delete; a key of the map actions
	targets  Targets
	orphans  bool          // whether the fault also acts on pods without a controllerRef
	grace    *int64        // for the action delete: grace period in seconds; nil means the pod's own grace period
	label    string        // for pod-relabel: key of the label that the fault changes
	downtime time.Duration // minimum time from the action until the fault undoes it
	env      *faults.Env
	faults.Background

	fired atomic.Int64 // number of actions that the fault has performed
	// pendingUndos lists the actions that the fault must still undo, the earliest first. While
	// the goroutine of the fault runs, only the goroutine uses this field. After the goroutine
	// has ended, only Heal uses it.
	pendingUndos []pendingUndo
}

// Unsupported returns an error if the fault's action needs a capability that the provider does
// not have. Otherwise it returns nil.
func (c *churn) Unsupported(on cluster.Capabilities) error {
	return on.Require("action "+c.action, actions[c.action].needs...)
}

func (c *churn) Inject(ctx context.Context, env *faults.Env) error {
	c.env = env
	c.Begin(ctx, c.run)
	return nil
}

func (c *churn) Heal(ctx context.Context) error {
	if err := c.End(ctx); err != nil {
		return fmt.Errorf("waiting until action %s on a pod has ended: %w", c.action, err)
	}
	return c.restoreAll(ctx)
}

func (c *churn) Summary() string {
	return fmt.Sprintf("performed action %s on %s", c.action, faults.Counted(int(c.fired.Load()), "pod"))
}

// run performs the action on one pod at every tick. It also undoes earlier actions whose downtime
// has passed. It ends when the fault is healed, or after c.targets.Times actions. If
// c.targets.Times is 0, the number of actions is not limited.
func (c *churn) run(ctx context.Context) {
	ticker := c.env.Clock.NewTicker(c.targets.Every)
	defer ticker.Stop()
	failing := false
	for c.targets.Times == 0 || c.fired.Load() < int64(c.targets.Times) {
		select {
		case <-c.Stopping():
			return
		case <-ticker.C():
		}
		select {
		case <-c.Stopping(): // if both channels were ready, the select above may have chosen the tick
			return
		default:
		}
		c.restoreDue(ctx)
		ref, err := c.actOnPod(ctx)
		switch {
		case err != nil && !failing: // record only the first error of an outage
			c.env.Report.Failed(ref, err)
		case err == nil && ref != nil:
			c.fired.Add(1)
			c.env.Report.Fired(0, ref, actions[c.action].detail(c))
		}
		failing = err != nil
	}
}

// failDetail returns the text for the "fired" record about a pod that the fault made fail.
func failDetail(c *churn) string {
	if !c.env.Capabilities.Has(cluster.SimulatedKubelets) {
		return "set activeDeadlineSeconds to 1"
	}
	return "set to Failed, as if evicted by the kubelet"
}

// deleteDetail returns the text for the "fired" record about a pod that the fault deleted.
func deleteDetail(c *churn) string {
	if c.grace != nil {
		return fmt.Sprintf("deleted with a grace period of %d s", *c.grace)
	}
	return "deleted"
}
