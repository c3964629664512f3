package admission

import (
	"context"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// Policy is the fault type admission-denied: an admission policy denies creates of one
// resource.
var Policy = faults.Type{
	Name:        "admission-denied",
	Description: "A ValidatingAdmissionPolicy denies the creation of objects with a controllerRef in the namespace.",
	Healing:     "The fault deletes the policy and waits until the API server admits the objects.",
	Needs:       []cluster.Capability{cluster.OwnsControlPlane, cluster.ControlsAdmission},
	Params: []faults.Param{
		{Name: "resource", Description: "The resource of the objects, with its API group. The resource may also be a custom resource that the scenario's workload creates.", Bounds: faults.ResourceBounds, Default: "pods"},
		{Name: "reason", Description: "The Status reason of the refusal: Invalid (422) or Forbidden (403).", Bounds: "one of " + strings.Join(reasons, ", "), Default: reasons[0]},
	},
	New:    newPolicy,
	Sample: samplePolicy,
}

// PolicyParams contains the parameters that a scenario sets for an admission-denied fault. The
// Params field of [Policy] documents each parameter.
type PolicyParams struct {
	Resource string `yaml:"resource"`
	Reason   string `yaml:"reason"`
}

// reasons lists the permitted values of [PolicyParams.Reason]. The API server answers a denied
// create with a Status that has this reason.
var reasons = []string{string(metav1.StatusReasonInvalid), string(metav1.StatusReasonForbidden)}

// newPolicy returns an admission-denied fault with the given parameters, or an error if a
// parameter is invalid.
func newPolicy(params faults.Params) (faults.Fault, error) {
	p := PolicyParams{Resource: "pods", Reason: reasons[0]}
	if err := params.Decode(&p); err != nil {
		return nil, err
	}
	if err := scenario.JoinErrors(faults.Resource(params, p.Resource), faults.OneOf(params, "reason", p.Reason, reasons)); err != nil {
		return nil, err
	}
	resource := schema.ParseGroupResource(p.Resource)
	return &policy{denied: p.Resource, denyPolicy: denyPolicy{
		resource:   resource,
		expression: "!object.metadata.?ownerReferences.orValue([]).exists(o, o.?controller.orValue(false))",
		message:    "objects with a controller are denied " + injectedFault,
		reason:     metav1.StatusReason(p.Reason),
	}}, nil
}

// policy is a fault of type admission-denied. It makes the API server deny creates of one
// resource.
type policy struct {
	denyPolicy
	denied string // resource whose creates the policy denies, with its API group
}

// Inject creates the policy and returns when the API server enforces the policy.
func (p *policy) Inject(ctx context.Context, env *faults.Env) error {
	if err := p.create(ctx, env, "denied"); err != nil {
		return err
	}
	env.Report.Fired(0, p.ref(), "denies creates of "+p.denied+" with a controllerRef")
	return nil
}

func (p *policy) Heal(ctx context.Context) error { return p.remove(ctx) }

func (p *policy) Summary() string { return "denied creates of " + p.denied + " with a controllerRef" }
