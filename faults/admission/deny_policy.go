package admission

import (
	"context"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// injectedFault is the end of the error message when the policy of a fault denies an object.
const injectedFault = "(injected fault)"

// denyPolicy is a ValidatingAdmissionPolicy that a fault creates. The policy denies creates of one
// resource in the namespace of the test run. It admits objects that satisfy a CEL expression.
//
// The policy also denies creates of one ConfigMap, whose name is the policy's name. The fault sends
// such a create with dry-run to find out whether the API server enforces the policy. No other
// policy denies this ConfigMap, so several policies can deny the resource at the same time.
type denyPolicy struct {
	// resource, expression and message say what the policy denies. The policy denies creates of the
	// resource, which may include a subresource such as pods/binding. It admits only objects for
	// which the CEL expression is true. The expression must be false for the ConfigMap that
	// probeConfigMap creates. The message is the error message for a denied object.
	resource            schema.GroupResource
	expression, message string
	// reason is the reason in the Status with which the API server denies an object, such as
	// Forbidden.
	reason metav1.StatusReason

	env  *faults.Env
	name string // name of the ValidatingAdmissionPolicy and of its binding; "" before they exist
}

// create creates the policy and returns when the API server enforces the policy. The policy's name
// begins with the given prefix. If create fails, it deletes the policy as far as possible and
// returns an error.
func (d *denyPolicy) create(ctx context.Context, env *faults.Env, prefix string) error {
	d.env = env
	d.name = fmt.Sprintf("%s-%s-%08x", prefix, env.Namespace, env.Rand.Uint32()) // unique, because the policy is cluster-scoped
	err := d.createPolicy(ctx)
	if err == nil {
		err = d.await(ctx, true)
	}
	if err != nil {
		return errors.Join(err, d.remove(context.WithoutCancel(ctx)))
	}
	return nil
}

// await waits until the API server enforces the policy. If the argument enforced is false, await
// waits until the API server no longer enforces it.
func (d *denyPolicy) await(ctx context.Context, enforced bool) error {
	probe := func(ctx context.Context, env *faults.Env) error { return probeConfigMap(ctx, env, d.name) }
	return awaitRefused(ctx, d.env, probe, d.name, enforced)
}

// createPolicy creates the policy and a ValidatingAdmissionPolicyBinding. The binding applies the
// policy to the namespace of the test run.
func (d *denyPolicy) createPolicy(ctx context.Context) error {
	api := d.env.Admin.AdmissionregistrationV1()
	meta := metav1.ObjectMeta{Name: d.name}
	if _, err := api.ValidatingAdmissionPolicies().Create(ctx, d.spec(meta), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating ValidatingAdmissionPolicy %s: %w", d.name, err)
	}
	_, err := api.ValidatingAdmissionPolicyBindings().Create(ctx, &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: meta,
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        d.name,
			ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			MatchResources: &admissionv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": d.env.Namespace}},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating ValidatingAdmissionPolicyBinding %s: %w", d.name, err)
	}
	return nil
}

// spec returns the ValidatingAdmissionPolicy object to create, with the given metadata.
func (d *denyPolicy) spec(meta metav1.ObjectMeta) *admissionv1.ValidatingAdmissionPolicy {
	probed := creates(configMaps)
	probed.ResourceNames = []string{d.name}
	return &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: meta,
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy:    ptr.To(admissionv1.Fail),
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{creates(d.resource), probed}},
			Validations:      []admissionv1.Validation{{Expression: d.expression, Message: d.message, Reason: ptr.To(d.reason)}},
		},
	}
}

// configMaps is the resource of the ConfigMap that a fault creates with dry-run. The API
// server's answer shows whether it enforces the fault's policy.
var configMaps = schema.GroupResource{Resource: "configmaps"}

// creates returns an admission rule that matches create requests for a resource in all API
// versions.
func creates(resource schema.GroupResource) admissionv1.NamedRuleWithOperations {
	return admissionv1.NamedRuleWithOperations{RuleWithOperations: admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Create},
		Rule:       admissionv1.Rule{APIGroups: []string{resource.Group}, APIVersions: []string{"*"}, Resources: []string{resource.Resource}},
	}}
}

// remove deletes the policy and its binding, and returns when the API server no longer enforces
// the policy. It does nothing if create was never called.
func (d *denyPolicy) remove(ctx context.Context) error {
	if d.name == "" {
		return nil
	}
	api := d.env.Admin.AdmissionregistrationV1()
	for _, remove := range []func(context.Context, string, metav1.DeleteOptions) error{
		api.ValidatingAdmissionPolicyBindings().Delete, api.ValidatingAdmissionPolicies().Delete,
	} {
		if err := remove(ctx, d.name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting ValidatingAdmissionPolicy %s and its binding: %w", d.name, err)
		}
	}
	return d.await(ctx, false)
}

// ref returns a reference to the policy, for the fault's records in the history.
func (d *denyPolicy) ref() *history.Ref {
	return &history.Ref{Resource: "validatingadmissionpolicies.admissionregistration.k8s.io", Name: d.name}
}
