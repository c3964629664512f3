// Package pods has the faults that befall pods directly, behind the back of the
// subject: beside the proxy, as other users, nodes and the kubelet do it.
package pods

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/faults"
)

// Churn is the kind "pod-churn".
var Churn = faults.Kind{
	Name:      "pod-churn",
	Sentence:  "Again and again a random live pod of the workload is deleted, fails as if its node had evicted it, or is unready for a time.",
	Healing:   "No more pods are touched, and those that are unready become ready; those that are gone stay gone.",
	Providers: faults.Providers,
	Params: []faults.Param{
		{Name: "action", Sentence: "What happens to the pod: it is deleted, its phase becomes Failed and it is ready no more (by a real kubelet: its deadline of 1 s is over), or it is not ready until a later tick (not with real kubelets).", Bounds: "one of " + strings.Join(actions, ", ")},
		{Name: "selector", Sentence: "A label selector for the pods, such as app=web.", Bounds: "a label selector", Default: "all pods of the namespace"},
		{Name: "every", Sentence: "The time from one pod to the next.", Bounds: "10ms to 1h", Default: "1s"},
		{Name: "gracePeriodSeconds", Sentence: "The grace period of a delete, in seconds.", Bounds: "0 to 3600, with action delete only", Default: "the pod's own"},
		{Name: "downtime", Sentence: "How long a pod stays unready at the least.", Bounds: "10ms to 1h, with action unready only", Default: "500ms"},
		{Name: "times", Sentence: "Touches so many pods at most.", Bounds: "0 to 1000000", Default: "0 (no limit)"},
		{Name: "orphans", Sentence: "Whether pods without a controller are touched too.", Bounds: "true or false", Default: "false"},
	},
	New:    NewChurn,
	Sample: sampleChurn,
}

// ChurnParams are the parameters of a pod-churn; [Churn] documents them.
type ChurnParams struct {
	Action             string         `yaml:"action"`
	Selector           string         `yaml:"selector"`
	Every              time.Duration  `yaml:"every"`
	GracePeriodSeconds *int64         `yaml:"gracePeriodSeconds"`
	Downtime           *time.Duration `yaml:"downtime"`
	Times              int            `yaml:"times"`
	Orphans            bool           `yaml:"orphans"`
}

// The actions of a pod-churn.
const (
	actionDelete  = "delete"
	actionFail    = "fail"
	actionUnready = "unready"
)

var actions = []string{actionDelete, actionFail, actionUnready}

const (
	everyMin              = 10 * time.Millisecond
	everyMax              = time.Hour
	everyDefault          = time.Second
	downtimeDefault       = 500 * time.Millisecond
	timesMax              = 1_000_000
	gracePeriodSecondsMax = 3600
)

// NewChurn makes the fault that params describe.
func NewChurn(params faults.Params) (faults.Fault, error) {
	p := ChurnParams{Every: everyDefault}
	if err := params.Decode(&p); err != nil {
		return nil, err
	}
	if err := faults.OneOf(params, "action", p.Action, actions); err != nil {
		return nil, err
	}
	if _, err := labels.Parse(p.Selector); err != nil {
		return nil, params.Errorf("selector", "%q is no label selector; expected one such as app=web,tier!=db", p.Selector)
	}
	switch grace, down := p.GracePeriodSeconds, p.Downtime; {
	case p.Every < everyMin || p.Every > everyMax:
		return nil, params.Errorf("every", "%v is out of bounds; expected %v to %v", p.Every, everyMin, everyMax)
	case down != nil && p.Action != actionUnready:
		return nil, params.Errorf("downtime", "goes with action %s, not %s", actionUnready, p.Action)
	case down != nil && (*down < everyMin || *down > everyMax):
		return nil, params.Errorf("downtime", "%v is out of bounds; expected %v to %v", *down, everyMin, everyMax)
	case p.Times < 0 || p.Times > timesMax:
		return nil, params.Errorf("times", "%d is out of bounds; expected 0 to %d", p.Times, timesMax)
	case grace != nil && p.Action != actionDelete:
		return nil, params.Errorf("gracePeriodSeconds", "goes with action %s, not %s", actionDelete, p.Action)
	case grace != nil && (*grace < 0 || *grace > gracePeriodSecondsMax):
		return nil, params.Errorf("gracePeriodSeconds", "%d is out of bounds; expected 0 to %d", *grace, gracePeriodSecondsMax)
	}
	return &churn{params: p, downtime: ptr.Deref(p.Downtime, downtimeDefault)}, nil
}

// churn is a pod-churn in force.
type churn struct {
	params   ChurnParams
	downtime time.Duration
	env      *faults.Env
	faults.Lasting

	fired atomic.Int64
	// unready are the pods to be made ready again, in the order in which they are
	// due. They are the goroutine's until it has ended, then Heal's.
	unready []unreadyPod
}

// CannotHappenOn refuses to make a pod unready that a real kubelet keeps: it writes
// its own opinion over anybody else's at once.
func (c *churn) CannotHappenOn(provider string) error {
	if c.params.Action == actionUnready && provider != faults.Simulated {
		return fmt.Errorf("%s: a real kubelet says itself which pods are ready", actionUnready)
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
		return fmt.Errorf("waiting for a %s of a pod: %w", c.params.Action, err)
	}
	return c.restoreAll(ctx)
}

func (c *churn) Tally() string { return fmt.Sprintf("%s of %d pods", c.params.Action, c.fired.Load()) }

// run touches a pod at every tick.
func (c *churn) run(ctx context.Context) {
	ticker := c.env.Clock.NewTicker(c.params.Every)
	defer ticker.Stop()
	troubled := false
	for c.params.Times == 0 || c.fired.Load() < int64(c.params.Times) {
		select {
		case <-c.Stopping():
			return
		case <-ticker.C():
		}
		select {
		case <-c.Stopping(): // a tick at the same time does not count
			return
		default:
		}
		c.restoreDue(ctx)
		ref, err := c.touch(ctx)
		switch {
		case err != nil && !troubled: // once, not at every tick of an outage
			c.env.Report.Failed(ref, err)
		case err == nil && ref != nil:
			c.fired.Add(1)
			c.env.Report.Fired(0, ref, c.detail())
		}
		troubled = err != nil
	}
}

func (c *churn) detail() string {
	switch grace := c.params.GracePeriodSeconds; {
	case c.params.Action == actionFail && c.env.Provider != faults.Simulated:
		return "given a deadline that is over at once"
	case c.params.Action == actionFail:
		return "failed as if evicted"
	case c.params.Action == actionUnready:
		return "made unready"
	case grace != nil:
		return fmt.Sprintf("deleted with a grace period of %d s", *grace)
	}
	return "deleted"
}
