package podutil

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// TestTrim checks that every function of this package returns the same for a pod and for the
// trimmed pod. Trim must remove all fields that no function reads.
func TestTrim(t *testing.T) {
	since := metav1.NewTime(time.Unix(1_000_000, 0))
	whole := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web-1", Namespace: "shop", UID: "u", ResourceVersion: "7", GenerateName: "web-",
			Labels: map[string]string{"app": "web"}, CreationTimestamp: since, DeletionTimestamp: &since,
			Annotations:     map[string]string{corev1.PodDeletionCost: "5", "note": "long configuration"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", UID: "o", Controller: ptr.To(true)}},
			ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: "someone"}},
		},
		Spec: corev1.PodSpec{
			NodeName: "node", Hostname: "one", Subdomain: "web",
			Volumes: []corev1.Volume{{Name: "data"}},
			Containers: []corev1.Container{
				{Name: "main", Image: "image", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 80}}},
				{Name: "other", Env: []corev1.EnvVar{{Name: "A", Value: "b"}}},
			},
			InitContainers: []corev1.Container{
				{Name: "proxy", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)},
				{Name: "setup"},
			},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.0.0.1", PodIPs: []corev1.PodIP{{IP: "10.0.0.1"}, {IP: "fd00::1"}},
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
				{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: since, Message: "well"},
			},
			ContainerStatuses: []corev1.ContainerStatus{
				{Name: "main", RestartCount: 3, ImageID: "sha256:1"}, {Name: "other", ImageID: "sha256:2"},
			},
			InitContainerStatuses: []corev1.ContainerStatus{{Name: "proxy", RestartCount: 2}, {Name: "setup", RestartCount: 9}},
		},
	}
	want := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web-1", Namespace: "shop", UID: "u", ResourceVersion: "7",
			Labels: whole.Labels, CreationTimestamp: since, DeletionTimestamp: &since,
			Annotations: map[string]string{corev1.PodDeletionCost: "5"}, OwnerReferences: whole.OwnerReferences,
		},
		Spec: corev1.PodSpec{
			NodeName: "node", Hostname: "one", Subdomain: "web",
			Containers:     []corev1.Container{{Name: "main", Ports: whole.Spec.Containers[0].Ports}},
			InitContainers: []corev1.Container{whole.Spec.InitContainers[0]},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.0.0.1", PodIPs: whole.Status.PodIPs,
			Conditions:            []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: since}},
			ContainerStatuses:     []corev1.ContainerStatus{{Name: "main", RestartCount: 3}},
			InitContainerStatuses: []corev1.ContainerStatus{{Name: "proxy", RestartCount: 2}, {Name: "setup", RestartCount: 9}},
		},
	}
	trimmed := Trim(whole)
	if diff := cmp.Diff(want, trimmed); diff != "" {
		t.Errorf("trimmed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(trimmed, Trim(trimmed)); diff != "" {
		t.Errorf("trimmed again (-once +twice):\n%s", diff)
	}
	containers, sidecars := Restarts(trimmed)
	if wantContainers, wantSidecars := Restarts(whole); containers != wantContainers || sidecars != wantSidecars {
		t.Errorf("%d and %d restarts, want %d and %d", containers, sidecars, wantContainers, wantSidecars)
	}
	if trimmed := Trim(&corev1.Pod{}); trimmed.Annotations != nil || trimmed.Status.Conditions != nil {
		t.Errorf("an empty pod became %v", trimmed)
	}
}
