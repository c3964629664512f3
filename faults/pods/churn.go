// Package pods contains the faults that act on pods directly, past the proxy, as other
// users, nodes and the kubelet do.
package pods

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/faults"
)

// Churn is the fault type pod-churn.
var Churn = faults.Type{
	Name:        "pod-churn",
	Description: "Again and again a random live pod of the workload is deleted, evicted, fails or succeeds, starts again, is slow to go, or is unready for a time.",
	Healing:     "No more pods are touched, and those that are unready become ready, those that are kept go; those that are gone stay gone.",
	Providers:   faults.Providers,
	Params: []faults.Param{
		{Name: "action", Description: "What happens to the pod: it is deleted; evicted through the API; its phase becomes Failed and it is ready no more (by a real kubelet: its deadline of 1 s is over); becomes Failed while it is still said to be ready (collapse); becomes Succeeded; it is not ready until a later tick; its containers start again, twice in its life at most, which makes it unready too (on a real kubelet for as long as that takes); it is deleted, but a finalizer keeps it until a later tick.", Bounds: "one of " + strings.Join(churnActions, ", ") + "; collapse and succeed on embedded only, unready and restart not on existing"},
		{Name: "selector", Description: "A label selector for the pods, such as app=web.", Bounds: "a label selector", Default: "all pods of the namespace"},
		{Name: "every", Description: "The time from one pod to the next.", Bounds: "10ms to 1h", Default: "1s"},
		{Name: "gracePeriodSeconds", Description: "The grace period of a delete, in seconds.", Bounds: "0 to 3600, with action delete only", Default: "the pod's own"},
		{Name: "downtime", Description: "How long a pod stays unready, or is kept, at the least.", Bounds: "10ms to 1h, with action unready, restart or linger only", Default: "500ms"},
		{Name: "times", Description: "Touches so many pods at most.", Bounds: "0 to 1000000", Default: "0 (no limit)"},
		{Name: "orphans", Description: "Whether pods without a controller are touched too.", Bounds: "true or false", Default: "false"},
	},
	New:    NewChurn,
	Sample: sampleChurn,
}

// ChurnParams are the parameters of pod-churn; [Churn] documents them.
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

// NewChurn returns the fault that params describe.
func NewChurn(params faults.Params) (faults.Fault, error) {
	p := ChurnParams{Every: everyDefault}
	if err := params.Decode(&p); err != nil {
		return nil, err
	}
	if err := faults.OneOf(params, "action", p.Action, churnActions); err != nil {
		return nil, err
	}
	if _, err := labels.Parse(p.Selector); err != nil {
		return nil, params.Errorf("selector", "%q is no label selector; expected one such as app=web,tier!=db", p.Selector)
	}
	switch grace, down := p.GracePeriodSeconds, p.Downtime; {
	case p.Every < everyMin || p.Every > everyMax:
		return nil, params.Errorf("every", "%v is out of bounds; expected %v to %v", p.Every, everyMin, everyMax)
	case down != nil && actions[p.Action].undo == nil:
		return nil, params.Errorf("downtime", "goes with action %s, %s or %s, not %s", actionUnready, actionRestart, actionLinger, p.Action)
	case down != nil && (*down < everyMin || *down > everyMax):
		return nil, params.Errorf("downtime", "%v is out of bounds; expected %v to %v", *down, everyMin, everyMax)
	case p.Times < 0 || p.Times > timesMax:
		return nil, params.Errorf("times", "%d is out of bounds; expected 0 to %d", p.Times, timesMax)
	case grace != nil && p.Action != actionDelete:
		return nil, params.Errorf("gracePeriodSeconds", "goes with action %s, not %s", actionDelete, p.Action)
	case grace != nil && (*grace < 0 || *grace > gracePeriodSecondsMax):
		return nil, params.Errorf("gracePeriodSeconds", "%d is out of bounds; expected 0 to %d", *grace, gracePeriodSecondsMax)
	}
	return &churn{
		action: p.Action, targets: Targets{Selector: p.Selector, Every: p.Every, Times: p.Times}, orphans: p.Orphans,
		grace: p.GracePeriodSeconds, downtime: ptr.Deref(p.Downtime, downtimeDefault),
	}, nil
}

// churn is a fault of any type in this package. It performs one action on one pod at each
// tick.
type churn struct {
	action   string // a key of actions
	targets  Targets
	orphans  bool
	grace    *int64        // of a delete
	label    string        // of pod-relabel
	downtime time.Duration // from the action to its undo
	env      *faults.Env
	faults.Background

	fired atomic.Int64
	// pendingUndos are the pods whose action must be undone, ordered by due time. The
	// goroutine owns them until it has ended; after that Heal does.
	pendingUndos []pendingUndo
}

// UnsupportedOn returns an error if the kubelets or the pods of the provider do not allow
// the action.
func (c *churn) UnsupportedOn(provider string) error {
	if on := actions[c.action].providers; on != nil && !slices.Contains(on, provider) {
		return fmt.Errorf("%s: a real kubelet says itself how pods are; expected %s", c.action, strings.Join(on, " or "))
	}
	return nil
}

func (c *churn) Inject(ctx context.Context, env *faults.Env) error {
	c.env = env
	c.Begin(ctx, c.run)
	return nil
}

func (c *churn) Heal(ctx context.Context) error {
	if err := c.End(ctx); err != nil {
		return fmt.Errorf("waiting for a %s of a pod: %w", c.action, err)
	}
	return c.restoreAll(ctx)
}

func (c *churn) Summary() string { return fmt.Sprintf("%s of %d pods", c.action, c.fired.Load()) }

// run acts on one pod at every tick.
func (c *churn) run(ctx context.Context) {
	ticker := c.env.Clock.NewTicker(c.targets.Every)
	defer ticker.Stop()
	troubled := false
	for c.targets.Times == 0 || c.fired.Load() < int64(c.targets.Times) {
		select {
		case <-c.Stopping():
			return
		case <-ticker.C():
		}
		select {
		case <-c.Stopping(): // a tick at the time of the stop does not count
			return
		default:
		}
		c.restoreDue(ctx)
		ref, err := c.actOnPod(ctx)
		switch {
		case err != nil && !troubled: // report an outage once, not at every tick
			c.env.Report.Failed(ref, err)
		case err == nil && ref != nil:
			c.fired.Add(1)
			c.env.Report.Fired(0, ref, actions[c.action].detail(c))
		}
		troubled = err != nil
	}
}

// failDetail and deleteDetail describe how the pod was failed or deleted.
func failDetail(c *churn) string {
	if c.env.Provider != faults.Simulated {
		return "given a deadline that is over at once"
	}
	return "failed as if evicted"
}

func deleteDetail(c *churn) string {
	if c.grace != nil {
		return fmt.Sprintf("deleted with a grace period of %d s", *c.grace)
	}
	return "deleted"
}
