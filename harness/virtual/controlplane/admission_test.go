package controlplane

import (
	"context"
	"errors"
	"fmt"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestQuota checks that the API server refuses pods above a quota. The quota controller must count
// fewer pods after some have ended.
func TestQuota(t *testing.T) {
	inBubble(t, func(f *fixture) {
		quotas := f.client.CoreV1().ResourceQuotas("default")
		_, err := quotas.Create(f.Context(), &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Name: "pods"},
			Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("2")}},
		}, metav1.CreateOptions{})
		if err != nil {
			f.Fatal(err)
		}
		f.awaitUsed("0")
		f.createDeployment(3)
		f.awaitPods(2)
		f.awaitUsed("2")
		f.await("an event about the refused pod", func(ctx context.Context) error {
			set, err := f.client.AppsV1().ReplicaSets("default").List(ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			for _, c := range set.Items[0].Status.Conditions {
				if c.Reason == "FailedCreate" {
					return nil
				}
			}
			return errors.New("the ReplicaSet has no condition with reason FailedCreate")
		})
		if err := f.client.AppsV1().Deployments("default").Delete(f.Context(), "web", metav1.DeleteOptions{}); err != nil {
			f.Fatal(err)
		}
		f.awaitPods(0)
		f.awaitUsed("0")
	})
}

// awaitUsed waits until the quota named pods counts a number of pods.
func (f *fixture) awaitUsed(n string) {
	f.Helper()
	f.await(n+" used pods in the quota", func(ctx context.Context) error {
		quota, err := f.client.CoreV1().ResourceQuotas("default").Get(ctx, "pods", metav1.GetOptions{})
		if err != nil {
			return err
		}
		used, known := quota.Status.Used[corev1.ResourcePods]
		if !known || used.String() != n {
			return fmt.Errorf("found %s", used.String())
		}
		return nil
	})
}

// TestPolicy checks that an admission policy denies the bindings of pods. The scheduler must write
// the reason to the pods, and retry after the policy is deleted.
func TestPolicy(t *testing.T) {
	const name = "no-bindings"
	inBubble(t, func(f *fixture) {
		api := f.client.AdmissionregistrationV1()
		meta := metav1.ObjectMeta{Name: name}
		_, err := api.ValidatingAdmissionPolicies().Create(f.Context(), &admissionv1.ValidatingAdmissionPolicy{
			ObjectMeta: meta,
			Spec: admissionv1.ValidatingAdmissionPolicySpec{
				MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
					RuleWithOperations: admissionv1.RuleWithOperations{
						Operations: []admissionv1.OperationType{admissionv1.Create},
						Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"*"}, Resources: []string{"pods/binding"}},
					},
				}}},
				Validations: []admissionv1.Validation{{Expression: "!object.metadata.name.startsWith('web-')", Message: "denied by the test"}},
			},
		}, metav1.CreateOptions{})
		if err != nil {
			f.Fatal(err)
		}
		_, err = api.ValidatingAdmissionPolicyBindings().Create(f.Context(), &admissionv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: meta,
			Spec:       admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
		}, metav1.CreateOptions{})
		if err != nil {
			f.Fatal(err)
		}
		f.await("the policy", func(ctx context.Context) error {
			err := f.client.CoreV1().Pods("default").Bind(ctx, &corev1.Binding{
				ObjectMeta: metav1.ObjectMeta{Name: "web-probe"}, Target: corev1.ObjectReference{Kind: "Node", Name: "node-0"},
			}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if !apierrors.IsInvalid(err) {
				return fmt.Errorf("the binding is not denied: %w", err)
			}
			return nil
		})
		f.createDeployment(1)
		f.await("the reason in the pod", func(context.Context) error {
			for _, pod := range f.pods() {
				for _, c := range pod.Status.Conditions {
					if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonSchedulerError {
						return nil
					}
				}
			}
			return errors.New("no pod has a condition PodScheduled with the reason")
		})
		if err := api.ValidatingAdmissionPolicyBindings().Delete(f.Context(), name, metav1.DeleteOptions{}); err != nil {
			f.Fatal(err)
		}
		f.awaitPods(1)
	})
}

// TestServiceAccount checks that the API server refuses a pod until its ServiceAccount exists.
func TestServiceAccount(t *testing.T) {
	inBubble(t, func(f *fixture) {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "web"},
			Spec:       corev1.PodSpec{ServiceAccountName: "late", Containers: []corev1.Container{{Name: "web", Image: "web"}}},
		}
		if _, err := f.client.CoreV1().Pods("default").Create(f.Context(), pod, metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
			f.Errorf("the create returned %v, want Forbidden because the ServiceAccount does not exist", err)
		}
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "late"}}
		if _, err := f.client.CoreV1().ServiceAccounts("default").Create(f.Context(), account, metav1.CreateOptions{}); err != nil {
			f.Fatal(err)
		}
		if _, err := f.client.CoreV1().Pods("default").Create(f.Context(), pod, metav1.CreateOptions{}); err != nil {
			f.Error(err)
		}
	})
}

// TestTerminatingNamespace checks that the API server refuses creates in a terminating namespace. The
// namespace must end when its last finalizer is removed.
func TestTerminatingNamespace(t *testing.T) {
	inBubble(t, func(f *fixture) {
		namespaces := f.client.CoreV1().Namespaces()
		made, err := namespaces.Create(f.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ending", Finalizers: []string{"test/keep"}}}, metav1.CreateOptions{})
		if err != nil {
			f.Fatal(err)
		}
		if err := namespaces.Delete(f.Context(), made.Name, metav1.DeleteOptions{}); err != nil {
			f.Fatal(err)
		}
		_, err = f.client.CoreV1().ConfigMaps(made.Name).Create(f.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "late"}}, metav1.CreateOptions{})
		if !apierrors.IsForbidden(err) || !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			f.Errorf("the create returned %v, want Forbidden because the namespace is terminating", err)
		}
		f.await("the end of the namespace", func(ctx context.Context) error {
			_, err := namespaces.Patch(ctx, made.Name, types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`), metav1.PatchOptions{})
			if !apierrors.IsNotFound(err) {
				return fmt.Errorf("the namespace exists: %w", err)
			}
			return nil
		})
	})
}
