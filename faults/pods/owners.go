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
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// Relabel is the fault type pod-relabel: at a regular interval, the fault changes a label of a
// random pod.
var Relabel = faults.Type{
	Name: "pod-relabel",
	Description: "At a regular interval, the fault changes a label value of a random active pod of the workload, so that no selector matches the pod. " +
		"It restores the value after a time.",
	Healing: "The fault restores the label of every changed pod that is not terminating.",
	Params: append([]faults.Param{
		{Name: "label", Description: "The key of the label.", Bounds: "a label key", Default: "app"},
		{Name: "downtime", Description: "The minimum time until the label is restored.", Bounds: "10ms to 1h", Default: "500ms"},
	}, targetParams...),
	New:    NewRelabel,
	Sample: sampleRelabel,
}

// Disown is the fault type pod-disown: at a regular interval, the fault removes or replaces a
// random pod's controllerRef.
var Disown = faults.Type{
	Name:        "pod-disown",
	Description: "At a regular interval, the fault removes the controllerRef of a random active pod of the workload, or replaces it with that of another controller.",
	Healing:     "The fault stops changing pods. The changed pods are not restored.",
	Params: append([]faults.Param{
		{Name: "how", Description: "The change of the controllerRef. strip: remove it. give: replace it with the controllerRef of an object that no controller reconciles.", Bounds: "one of " + strings.Join(disownActions, ", ")},
	}, targetParams...),
	New:                NewDisown,
	NotGeneratedReason: "if a pod loses its controllerRef while its controller deletes it, the controller waits 5 minutes for its expectations to expire (known upstream issue delete-after-owner-change); only the last change of a workload may be of this type",
}

// targetParams documents the parameters in [Targets], which pod-relabel and pod-disown share.
var targetParams = []faults.Param{
	{Name: "selector", Description: "A label selector for the pods.", Bounds: "a label selector, such as app=web", Default: "all pods of the namespace"},
	{Name: "every", Description: "The time between actions.", Bounds: "10ms to 1h", Default: "1s"},
	{Name: "times", Description: "The maximum number of actions.", Bounds: "0 to 1000000", Default: "0 (no limit)"},
}

// Targets contains the parameters that pod-relabel and pod-disown share. They say which pods the
// fault may change, how often, and how many times.
type Targets struct {
	// Selector is a label selector for the pods. An empty Selector selects all pods of the
	// namespace.
	Selector string `yaml:"selector"`
	// Every is the time between two actions. Times is the maximum number of actions; 0 means
	// no limit.
	Every time.Duration `yaml:"every"`
	Times int           `yaml:"times"`
}

// validate returns an error for each invalid parameter, with its position in the scenario. It
// returns nil if all parameters are valid.
func (v *Targets) validate(params faults.Params) error {
	errs := []error{faults.Between(params, "every", v.Every, everyMin, everyMax), faults.Between(params, "times", v.Times, 0, timesMax)}
	if _, err := labels.Parse(v.Selector); err != nil {
		errs = append(errs, params.Errorf("selector", "found %q, which is not a label selector; expected a selector such as app=web,tier!=db", v.Selector))
	}
	return scenario.JoinErrors(errs...)
}

// RelabelParams contains the parameters that a scenario sets for a pod-relabel fault. The Params
// field of [Relabel] documents each parameter.
type RelabelParams struct {
	Label    string        `yaml:"label"`
	Downtime time.Duration `yaml:"downtime"`
	Targets
}

// NewRelabel returns a pod-relabel fault with the given parameters, or an error if a
// parameter is invalid.
func NewRelabel(params faults.Params) (faults.Fault, error) {
	p := RelabelParams{Label: "app", Downtime: downtimeDefault, Targets: Targets{Every: everyDefault}}
	if err := params.Decode(&p); err != nil {
		return nil, err
	}
	errs := []error{p.validate(params), faults.Between(params, "downtime", p.Downtime, everyMin, everyMax)}
	if len(validation.IsQualifiedName(p.Label)) > 0 {
		errs = append(errs, params.Errorf("label", "found %q, which is not a label key; expected a key such as app", p.Label))
	}
	if err := scenario.JoinErrors(errs...); err != nil {
		return nil, err
	}
	return &churn{action: actionRelabel, targets: p.Targets, label: p.Label, downtime: p.Downtime}, nil
}

// disownActions lists the permitted values of [DisownParams.How].
var disownActions = []string{actionStrip, actionGive}

// DisownParams contains the parameters that a scenario sets for a pod-disown fault. The Params
// field of [Disown] documents each parameter.
type DisownParams struct {
	How string `yaml:"how"`
	Targets
}

// NewDisown returns a pod-disown fault with the given parameters, or an error if a
// parameter is invalid.
func NewDisown(params faults.Params) (faults.Fault, error) {
	p := DisownParams{Targets: Targets{Every: everyDefault}}
	if err := params.Decode(&p); err != nil {
		return nil, err
	}
	if err := scenario.JoinErrors(faults.OneOf(params, "how", p.How, disownActions), p.validate(params)); err != nil {
		return nil, err
	}
	return &churn{action: p.How, targets: p.Targets}, nil
}

// changedLabelPrefix is the text that pod-relabel puts in front of a label's value. The owner's
// selector then no longer matches the pod.
const changedLabelPrefix = "changed-"

// relabelDetail returns the text for the history record of a label change.
func (c *churn) relabelDetail() string { return "changed label " + c.label }

// relabel puts changedLabelPrefix in front of the value of the pod's label c.label. The owner's
// selector then no longer matches the pod. relabel returns the pod's new resourceVersion.
func (c *churn) relabel(ctx context.Context, pod *corev1.Pod) (history.Version, error) {
	changed := pod.DeepCopy()
	changed.Labels[c.label] = changedLabelPrefix + changed.Labels[c.label]
	return c.write(ctx, changed)
}

// restoreLabel removes changedLabelPrefix from the value of the pod's label c.label. It does
// nothing for a terminating pod, or if another client has changed the label.
func (c *churn) restoreLabel(ctx context.Context, pod *corev1.Pod) error {
	value, ok := strings.CutPrefix(pod.Labels[c.label], changedLabelPrefix)
	if !ok || pod.DeletionTimestamp != nil {
		return nil
	}
	restored := pod.DeepCopy()
	restored.Labels[c.label] = value
	_, err := c.write(ctx, restored)
	return err
}

// removeControllerRef removes a pod's controllerRef, and returns the pod's new resourceVersion.
// The pod's other owner references remain.
func (c *churn) removeControllerRef(ctx context.Context, pod *corev1.Pod) (history.Version, error) {
	changed := pod.DeepCopy()
	changed.OwnerReferences = slices.DeleteFunc(changed.OwnerReferences, func(o metav1.OwnerReference) bool {
		return o.Controller != nil && *o.Controller
	})
	return c.write(ctx, changed)
}

// replaceControllerRef replaces all owner references of a pod by one controllerRef, and returns
// the pod's new resourceVersion. The controllerRef refers to a ConfigMap that stands for another
// controller.
func (c *churn) replaceControllerRef(ctx context.Context, pod *corev1.Pod) (history.Version, error) {
	owner, err := c.env.OtherClient(ctx)
	if err != nil {
		return 0, err
	}
	changed := pod.DeepCopy()
	changed.OwnerReferences = []metav1.OwnerReference{*owner}
	return c.write(ctx, changed)
}
