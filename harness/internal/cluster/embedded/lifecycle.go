package embedded

import (
	"context"
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

// KWOK patches and deletes pods without a precondition. A fault may change a pod after KWOK has
// decided on a write, and before KWOK sends the write. KWOK could then change the phase from Failed
// to Running, which a kubelet never does. The policies in this file make the API server refuse such
// writes.

// lifecyclePolicy is the name of the admission policy that protects the status of Failed and
// Succeeded pods.
const lifecyclePolicy = "gauntlet-pod-lifecycle"

// podPolicies are admission policies that refuse pod writes which no real kubelet would send. An
// example is a status update that makes a Failed pod Running. lifecyclePolicy is the last one,
// because awaitPodPolicies waits for it.
var podPolicies = []admissionv1.ValidatingAdmissionPolicy{
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
}

// terminated is a CEL expression that is true if the pod was Failed or Succeeded before the
// request.
const terminated = "(has(oldObject.status.phase) && oldObject.status.phase in ['Failed', 'Succeeded'])"

// readyIn returns a CEL expression for an admission policy. It is true if the CEL variable, such
// as object or oldObject, is a Ready pod.
func readyIn(variable string) string {
	return fmt.Sprintf("has(%[1]s.status.conditions) && %[1]s.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')", variable)
}

// kubeletRequest is a match condition that limits a policy to requests of the simulated kubelets.
var kubeletRequest = []admissionv1.MatchCondition{{
	Name: "simulated-kubelet", Expression: fmt.Sprintf("request.userInfo.username == %q", cluster.KubeletUser),
}}

// podPolicy returns a ValidatingAdmissionPolicy for one operation on a resource, such as an update
// of pods/status. The argument when limits the policy to some users, such as the simulated
// kubelets. If when is nil, the policy applies to all users.
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

// awaitPodPolicies waits until the API server enforces podPolicies. It tries to make a Failed pod
// Running until the API server refuses this change.
//
// The test pod is never scheduled, and awaitPodPolicies deletes it at the end. The API server
// learns of the policies in the order of their creation. It therefore enforces the other policies
// too, once it enforces lifecyclePolicy.
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
			return fmt.Errorf("the API server still accepts that pod default/%s changes from phase Failed to Running; expected policy %s to refuse it", probe.Name, lifecyclePolicy)
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
