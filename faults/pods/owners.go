package pods

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Relabel is the fault type pod-relabel.
var Relabel = faults.Type{
	Name:        "pod-relabel",
	Description: "Again and again a random live pod of the workload gets another value for a label, so that no selector matches it, and the old one back after a time.",
	Healing:     "Every such pod has its label back, if it still lives.",
	Providers:   faults.Providers,
	Params: append([]faults.Param{
		{Name: "label", Description: "The key of the label.", Bounds: "a label's key", Default: "app"},
		{Name: "downtime", Description: "How long the pod is without its own value at the least.", Bounds: "10ms to 1h", Default: "500ms"},
	}, targetParams...),
	New:    NewRelabel,
	Sample: sampleRelabel,
}

// Disown is the fault type pod-disown.
var Disown = faults.Type{
	Name:        "pod-disown",
	Description: "Again and again a random live pod of the workload loses the owner that controls it, or is given to another one.",
	Healing:     "No more pods are touched; whoever has them by then keeps them.",
	Providers:   faults.Providers,
	Params: append([]faults.Param{
		{Name: "how", Description: "What becomes of the controllerRef: it is removed, or replaced by that of an object that no controller cares for.", Bounds: "one of " + strings.Join(disownActions, ", ")},
	}, targetParams...),
	New:                NewDisown,
	NotGeneratedReason: "a pod disowned while its controller deletes it leaves both ours and upstream waiting for 5 minutes",
}

// targetParams documents the fields of [Targets].
var targetParams = []faults.Param{
	{Name: "selector", Description: "A label selector for the pods, such as app=web.", Bounds: "a label selector", Default: "all pods of the namespace"},
	{Name: "every", Description: "The time from one pod to the next.", Bounds: "10ms to 1h", Default: "1s"},
	{Name: "times", Description: "Touches so many pods at most.", Bounds: "0 to 1000000", Default: "0 (no limit)"},
}

// Targets are the parameters that select the pods and the rate of the actions.
type Targets struct {
	Selector string        `yaml:"selector"`
	Every    time.Duration `yaml:"every"`
	Times    int           `yaml:"times"`
}

func (v *Targets) validate(params faults.Params) error {
	if _, err := labels.Parse(v.Selector); err != nil {
		return params.Errorf("selector", "%q is no label selector; expected one such as app=web,tier!=db", v.Selector)
	}
	if v.Every < everyMin || v.Every > everyMax {
		return params.Errorf("every", "%v is out of bounds; expected %v to %v", v.Every, everyMin, everyMax)
	}
	if v.Times < 0 || v.Times > timesMax {
		return params.Errorf("times", "%d is out of bounds; expected 0 to %d", v.Times, timesMax)
	}
	return nil
}

// RelabelParams are the parameters of pod-relabel; [Relabel] documents them.
type RelabelParams struct {
	Label    string        `yaml:"label"`
	Downtime time.Duration `yaml:"downtime"`
	Targets
}

// NewRelabel returns the fault that params describe.
func NewRelabel(params faults.Params) (faults.Fault, error) {
	p := RelabelParams{Label: "app", Downtime: downtimeDefault, Targets: Targets{Every: everyDefault}}
	if err := params.Decode(&p); err != nil {
		return nil, err
	}
	if len(validation.IsQualifiedName(p.Label)) > 0 {
		return nil, params.Errorf("label", "%q is no label's key; expected one such as app", p.Label)
	}
	if p.Downtime < everyMin || p.Downtime > everyMax {
		return nil, params.Errorf("downtime", "%v is out of bounds; expected %v to %v", p.Downtime, everyMin, everyMax)
	}
	if err := p.validate(params); err != nil {
		return nil, err
	}
	return &churn{action: actionRelabel, targets: p.Targets, label: p.Label, downtime: p.Downtime}, nil
}

// disownActions are the values of the parameter how of pod-disown.
var disownActions = []string{actionStrip, actionGive}

// DisownParams are the parameters of pod-disown; [Disown] documents them.
type DisownParams struct {
	How string `yaml:"how"`
	Targets
}

// NewDisown returns the fault that params describe.
func NewDisown(params faults.Params) (faults.Fault, error) {
	p := DisownParams{Targets: Targets{Every: everyDefault}}
	if err := params.Decode(&p); err != nil {
		return nil, err
	}
	if err := faults.OneOf(params, "how", p.How, disownActions); err != nil {
		return nil, err
	}
	if err := p.validate(params); err != nil {
		return nil, err
	}
	return &churn{action: p.How, targets: p.Targets}, nil
}

// changedLabelPrefix is the prefix of a changed label value.
const changedLabelPrefix = "astray-"

func (c *churn) relabelDetail() string { return "made astray by its label " + c.label }

// relabel adds a prefix to the value of the label.
func (c *churn) relabel(ctx context.Context, victim *corev1.Pod) (history.Version, error) {
	away := victim.DeepCopy()
	away.Labels[c.label] = changedLabelPrefix + away.Labels[c.label]
	return c.write(ctx, away)
}

func (c *churn) restoreLabel(ctx context.Context, pod *corev1.Pod) error {
	value, ok := strings.CutPrefix(pod.Labels[c.label], changedLabelPrefix)
	if !ok || pod.DeletionTimestamp != nil {
		return nil
	}
	back := pod.DeepCopy()
	back.Labels[c.label] = value
	_, err := c.write(ctx, back)
	return err
}

// removeControllerRef removes the controllerRef from a pod.
func (c *churn) removeControllerRef(ctx context.Context, victim *corev1.Pod) (history.Version, error) {
	stripped := victim.DeepCopy()
	stripped.OwnerReferences = slices.DeleteFunc(stripped.OwnerReferences, func(o metav1.OwnerReference) bool {
		return o.Controller != nil && *o.Controller
	})
	return c.write(ctx, stripped)
}

// replaceControllerRef replaces the controllerRef of a pod by that of another controller.
func (c *churn) replaceControllerRef(ctx context.Context, victim *corev1.Pod) (history.Version, error) {
	owner, err := c.env.OtherClient(ctx)
	if err != nil {
		return 0, err
	}
	given := victim.DeepCopy()
	given.OwnerReferences = []metav1.OwnerReference{*owner}
	return c.write(ctx, given)
}
