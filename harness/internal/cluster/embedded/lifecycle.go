package embedded

import (
	"context"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

// KWOK patches a pod, or deletes it, without a precondition. It may have decided on the write
// before a fault changed the pod. It could then write the phase Running over Failed, which a
// kubelet never does. The policies in this file make the API server refuse such writes.

// lifecyclePolicy is the name of the policy for the status of pods that have terminated.
const lifecyclePolicy = "gauntlet-pod-lifecycle"

// podPolicies are admission policies. They refuse writes of pods which no kubelet sends, such
// as making a Failed pod Running.
var podPolicies = []admissionv1.ValidatingAdmissionPolicy{
	podPolicy(lifecyclePolicy, admissionv1.Update, "pods/status", nil,
		admissionv1.Validation{
			Expression: terminated + " ? object.status.phase == oldObject.status.phase : true",
			Message:    "a pod never leaves the phase Failed or Succeeded",
		},
		admissionv1.Validation{
			Expression: terminated + " && !(" + readyIn("oldObject") + ") ? !(" + readyIn("object") + ") : true",
			Message:    "a pod with the phase Failed or Succeeded never becomes Ready",
		},
	),
	podPolicy("gauntlet-kubelet-status", admissionv1.Update, "pods/status", kubeletRequest,
		admissionv1.Validation{
			Expression: "has(object.spec.nodeName) && object.spec.nodeName != ''",
			Message:    "a kubelet writes only the status of pods on its node",
		},
	),
	podPolicy("gauntlet-kubelet-delete", admissionv1.Delete, "pods", kubeletRequest,
		admissionv1.Validation{
			Expression: "has(oldObject.metadata.deletionTimestamp)",
			Message:    "a kubelet deletes only terminating pods",
		},
	),
}

// terminated is a CEL expression that is true if the pod had terminated before the request.
const terminated = "(has(oldObject.status.phase) && oldObject.status.phase in ['Failed', 'Succeeded'])"

// readyIn returns a CEL expression that is true if a variable contains a pod that is Ready.
func readyIn(variable string) string {
	return fmt.Sprintf("has(%[1]s.status.conditions) && %[1]s.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')", variable)
}

// kubeletRequest is the match condition of policies that apply only to requests of the
// simulated kubelets.
var kubeletRequest = []admissionv1.MatchCondition{{
	Name: "simulated-kubelet", Expression: fmt.Sprintf("request.userInfo.username == %q", cluster.KubeletUser),
}}

// podPolicy returns a policy for one operation on pods or on a subresource of pods.
func podPolicy(name string, operation admissionv1.OperationType, resource string, when []admissionv1.MatchCondition, validations ...admissionv1.Validation) admissionv1.ValidatingAdmissionPolicy {
	return admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy:   ptr.To(admissionv1.Fail),
			MatchConditions: when,
			MatchConstraints: &admissionv1.MatchResources{
				ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{operation},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{resource}},
				}}},
			},
			Validations: validations,
		},
	}
}

// protectPodLifecycle creates the policies in podPolicies and waits until the API server
// enforces them.
func protectPodLifecycle(ctx context.Context, client kubernetes.Interface) error {
	api := client.AdmissionregistrationV1()
	for i := range podPolicies {
		policy := podPolicies[i].DeepCopy()
		binding := &admissionv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: policy.Name},
			Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: policy.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			},
		}
		err := create(ctx, "ValidatingAdmissionPolicy "+policy.Name, func(ctx context.Context) error {
			_, err := api.ValidatingAdmissionPolicies().Create(ctx, policy, metav1.CreateOptions{})
			return err
		})
		if err != nil {
			return err
		}
		err = create(ctx, "ValidatingAdmissionPolicyBinding "+policy.Name, func(ctx context.Context) error {
			_, err := api.ValidatingAdmissionPolicyBindings().Create(ctx, binding, metav1.CreateOptions{})
			return err
		})
		if err != nil {
			return err
		}
	}
	return awaitPodPolicies(ctx, client)
}

// awaitPodPolicies waits until the API server enforces podPolicies: until it refuses to make a
// Failed pod Running.
//
// It uses a pod that no scheduler assigns to a node, and deletes this pod. The API server loads
// all policies at the same time, so it then also enforces the other ones.
func awaitPodPolicies(ctx context.Context, client kubernetes.Interface) error {
	pods := client.CoreV1().Pods(metav1.NamespaceDefault)
	probe := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: lifecyclePolicy},
		Spec: corev1.PodSpec{
			SchedulerName: lifecyclePolicy, AutomountServiceAccountToken: ptr.To(false),
			Containers: []corev1.Container{{Name: "none", Image: "none"}},
		},
	}
	err := create(ctx, "pod default/"+probe.Name, func(ctx context.Context) error {
		_, err := pods.Create(ctx, probe, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	setPhase := func(phase corev1.PodPhase, options metav1.PatchOptions) error {
		_, err := pods.Patch(ctx, probe.Name, types.MergePatchType, fmt.Appendf(nil, `{"status":{"phase":%q}}`, phase), options, "status")
		return err
	}
	if err := setPhase(corev1.PodFailed, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("setting the phase of pod default/%s: %w", probe.Name, err)
	}
	err = poll(ctx, "the API server to enforce ValidatingAdmissionPolicy "+lifecyclePolicy, func(context.Context) error {
		switch err := setPhase(corev1.PodRunning, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}); {
		case err == nil:
			return errors.New("the API server still accepts a change of the phase of a pod from Failed to Running")
		case !apierrors.IsInvalid(err):
			return err
		}
		return nil
	})
	if err != nil {
		return err
	}
	return pods.Delete(ctx, probe.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})
}
