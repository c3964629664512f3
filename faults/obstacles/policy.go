package obstacles

import (
	"context"
	"errors"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Policy is the kind "admission-denied".
var Policy = faults.Kind{
	Name:      "admission-denied",
	Sentence:  "A ValidatingAdmissionPolicy denies that objects with a controller are created in the namespace.",
	Healing:   "The policy is removed, and waited for until it denies nothing more.",
	Providers: faults.OwnClusters,
	Params: []faults.Param{
		{Name: "resource", Sentence: "The resource of the objects, with its group.", Bounds: "one of " + strings.Join(denied, ", "), Default: podResource},
		{Name: "reason", Sentence: "What the API server gives as its reason: a 422, or a 403.", Bounds: "one of " + strings.Join(reasons, ", "), Default: reasons[0]},
	},
	New:    newPolicy,
	Sample: samplePolicy,
}

// PolicyParams are the parameters of an admission-denied; [Policy] documents them.
type PolicyParams struct {
	Resource string `yaml:"resource"`
	Reason   string `yaml:"reason"`
}

var (
	denied  = []string{podResource, setResource}
	reasons = []string{string(metav1.StatusReasonInvalid), string(metav1.StatusReasonForbidden)}
)

func newPolicy(params faults.Params) (faults.Fault, error) {
	p := PolicyParams{Resource: podResource, Reason: reasons[0]}
	if err := params.Decode(&p); err != nil {
		return nil, err
	}
	if err := faults.OneOf(params, "resource", p.Resource, denied); err != nil {
		return nil, err
	}
	if err := faults.OneOf(params, "reason", p.Reason, reasons); err != nil {
		return nil, err
	}
	return &policy{params: p}, nil
}

// policy is a policy in force, until Heal.
type policy struct {
	params PolicyParams
	env    *faults.Env
	name   string // of the policy and its binding, "" before there is one
}

// Inject returns when the API server goes by the policy.
func (p *policy) Inject(ctx context.Context, env *faults.Env) error {
	p.env = env
	p.name = fmt.Sprintf("denied-%s-%08x", env.Namespace, env.Rand.Uint32()) // nobody else's: it is in no namespace
	err := p.make(ctx)
	if err == nil {
		err = awaitRefused(ctx, env, p.params.Resource, p.name, true)
	}
	if err != nil {
		return errors.Join(err, p.Heal(context.WithoutCancel(ctx)))
	}
	ref := &history.Ref{Resource: "validatingadmissionpolicies.admissionregistration.k8s.io", Name: p.name}
	env.Report.Fired(0, ref, "denies new "+p.params.Resource+" that have a controller")
	return nil
}

// make makes the policy and binds it to the namespace.
func (p *policy) make(ctx context.Context) error {
	api := p.env.Admin.AdmissionregistrationV1()
	meta := metav1.ObjectMeta{Name: p.name}
	if _, err := api.ValidatingAdmissionPolicies().Create(ctx, p.spec(meta), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("making the policy %s: %w", p.name, err)
	}
	_, err := api.ValidatingAdmissionPolicyBindings().Create(ctx, &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: meta,
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        p.name,
			ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			MatchResources: &admissionv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": p.env.Namespace}},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("binding the policy %s: %w", p.name, err)
	}
	return nil
}

func (p *policy) spec(meta metav1.ObjectMeta) *admissionv1.ValidatingAdmissionPolicy {
	resource := schema.ParseGroupResource(p.params.Resource)
	rule := admissionv1.NamedRuleWithOperations{RuleWithOperations: admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Create},
		Rule:       admissionv1.Rule{APIGroups: []string{resource.Group}, APIVersions: []string{"v1"}, Resources: []string{resource.Resource}},
	}}
	return &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: meta,
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy:    ptr.To(admissionv1.Fail),
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{rule}},
			Validations: []admissionv1.Validation{{
				Expression: "!object.metadata.?ownerReferences.orValue([]).exists(o, o.?controller.orValue(false))",
				Message:    "objects with a controller are denied",
				Reason:     ptr.To(metav1.StatusReason(p.params.Reason)),
			}},
		},
	}
}

// Heal removes the policy, and returns when the API server has heard of it.
func (p *policy) Heal(ctx context.Context) error {
	if p.name == "" {
		return nil
	}
	api := p.env.Admin.AdmissionregistrationV1()
	for _, remove := range []func(context.Context, string, metav1.DeleteOptions) error{
		api.ValidatingAdmissionPolicyBindings().Delete, api.ValidatingAdmissionPolicies().Delete,
	} {
		if err := remove(ctx, p.name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("removing the policy %s: %w", p.name, err)
		}
	}
	return awaitRefused(ctx, p.env, p.params.Resource, p.name, false)
}

func (p *policy) Tally() string { return "denied new " + p.params.Resource }
