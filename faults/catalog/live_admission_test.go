package catalog

import (
	"context"
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// replicaSet returns a ReplicaSet with 0 replicas. If owner is not nil, owner is the
// ReplicaSet's controller.
func replicaSet(name string, owner *corev1.ConfigMap) *appsv1.ReplicaSet {
	labels := map[string]string{"app": "web"}
	none := int32(0)
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, corev1.SchemeGroupVersion.WithKind("ConfigMap"))},
		},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &none, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "pause", Image: "pause"}}},
			},
		},
	}
}

// TestNameTaken checks that the API server answers the tested controller's create with 409
// (AlreadyExists). The fault must create at most as many ReplicaSets as the parameter times says.
// It must create none if the controller's ReplicaSet has another owner.
func TestNameTaken(t *testing.T) {
	for _, template := range []string{"other", "same"} {
		t.Run(template, func(t *testing.T) {
			t.Parallel()
			l := startLive(t)
			owner := l.commit("web")
			heal := l.inject("name-taken", "{owner: ConfigMap/web, template: "+template+", times: 2}")
			create := func(set *appsv1.ReplicaSet) error {
				_, err := l.subject.AppsV1().ReplicaSets(l.namespace).Create(t.Context(), set, metav1.CreateOptions{})
				return err
			}
			if err := create(replicaSet("theirs", l.commit("db"))); err != nil {
				t.Errorf("create of a ReplicaSet of another owner: error %v, want none", err)
			}
			for _, name := range []string{"web-1", "web-2"} {
				if err := create(replicaSet(name, owner)); !apierrors.IsAlreadyExists(err) {
					t.Errorf("%s: error %v; want AlreadyExists", name, err)
				}
				other, err := l.admin.AppsV1().ReplicaSets(l.namespace).Get(t.Context(), name, metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				same := template == "same"
				if metav1.IsControlledBy(other, owner) || (metav1.GetControllerOf(other) != nil) != same ||
					(other.Labels["app"] == "web") != same || (other.Spec.Template.Spec.Containers[0].Name == "pause") != same {
					t.Errorf("ReplicaSet %s of the fault: %+v", name, other)
				}
			}
			if err := create(replicaSet("web-3", owner)); err != nil {
				t.Errorf("third create of a ReplicaSet: error %v, want none", err)
			}
			if l.fired() != 2 {
				t.Errorf("fired %d times, want 2", l.fired())
			}
			heal()
			if err := create(replicaSet("web-1", owner)); !apierrors.IsAlreadyExists(err) {
				t.Errorf("the fault's ReplicaSet is gone after healing: %v", err)
			}
		})
	}
}

// createPod creates a pod through the fault proxy, as the controller under test does. If owner is
// not nil, owner is the pod's controller.
func (l *live) createPod(name string, owner *corev1.ConfigMap) error {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "pause", Image: "pause"}}},
	}
	if owner != nil {
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, corev1.SchemeGroupVersion.WithKind("ConfigMap"))}
	}
	_, err := l.subject.CoreV1().Pods(l.namespace).Create(l.t.Context(), pod, metav1.CreateOptions{})
	return err
}

// TestQuotaExhausted checks that the API server admits only the given number of pods. The API
// server must admit more pods after the test deletes a pod, and after the fault is healed.
func TestQuotaExhausted(t *testing.T) {
	l := startLive(t)
	l.runPod("early", ready)
	heal := l.inject("quota-exhausted", "left: 2")
	for _, name := range []string{"a", "b"} {
		if err := l.createPod(name, nil); err != nil {
			t.Errorf("create of pod %s within the quota: error %v, want none", name, err)
		}
	}
	if err := l.createPod("c", nil); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "exceeded quota") {
		t.Errorf("create above the quota: error %v; want Forbidden", err)
	}
	if err := l.create("config"); err != nil {
		t.Errorf("create of a ConfigMap: error %v, want none", err)
	}
	now := int64(0)
	if err := l.admin.CoreV1().Pods(l.namespace).Delete(t.Context(), "early", metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Fatal(err)
	}
	if err := l.poll("room for another pod", func(context.Context) error { return l.createPod("c", nil) }); err != nil {
		t.Error(err)
	}
	heal()
	if err := l.createPod("d", nil); err != nil {
		t.Errorf("create of a pod after healing: error %v, want none", err)
	}
	if l.fired() != 1 {
		t.Errorf("fired %d times, want once", l.fired())
	}
}

// TestAdmissionDenied checks that the API server denies only objects with a controllerRef. The
// error must have the reason in the fault's parameters.
func TestAdmissionDenied(t *testing.T) {
	for _, test := range []struct {
		resource, reason string
		denied           func(error) bool
	}{
		{"pods", "Forbidden", apierrors.IsForbidden},
		{"replicasets.apps", "Invalid", apierrors.IsInvalid},
	} {
		t.Run(test.resource, func(t *testing.T) {
			t.Parallel()
			l := startLive(t)
			owner := l.commit("owner")
			l.runPod("early", ready) // returns when the namespace admits pods
			heal := l.inject("admission-denied", "{resource: "+test.resource+", reason: "+test.reason+"}")
			create := func(resource, name string, owner *corev1.ConfigMap) error {
				if resource == "pods" {
					return l.createPod(name, owner)
				}
				_, err := l.subject.AppsV1().ReplicaSets(l.namespace).Create(t.Context(), replicaSet(name, owner), metav1.CreateOptions{})
				return err
			}
			if err := create(test.resource, "a", owner); !test.denied(err) || !strings.Contains(err.Error(), "denied request: objects with a controller are denied") {
				t.Errorf("create of one of %s with a controllerRef: error %v, want a denial by the policy", test.resource, err)
			}
			if err := l.createPod("free", nil); err != nil {
				t.Errorf("create of a pod without a controllerRef: error %v, want none", err)
			}
			other := map[string]string{"pods": "replicasets.apps", "replicasets.apps": "pods"}[test.resource]
			if err := create(other, "b", owner); err != nil {
				t.Errorf("create of one of %s, which the policy does not deny: error %v, want none", other, err)
			}
			heal()
			if err := create(test.resource, "a", owner); err != nil {
				t.Errorf("after healing: %v", err)
			}
			if l.fired() != 1 {
				t.Errorf("fired %d times, want once", l.fired())
			}
		})
	}
}

// TestNamespaceTerminating checks that the API server deletes the objects in the namespace and
// refuses creates. Healing must create a new namespace.
func TestNamespaceTerminating(t *testing.T) {
	l := startLive(t)
	l.runPod("early", ready)
	l.commit("early")
	before, err := l.admin.CoreV1().Namespaces().Get(t.Context(), l.namespace, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	heal := l.inject("namespace-terminating", "{}")
	if err := l.createPod("late", nil); !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		t.Errorf("create of a pod: error %v; want Forbidden, namespace terminating", err)
	}
	err = l.poll("an empty namespace", func(ctx context.Context) error {
		pods, err := l.admin.CoreV1().Pods(l.namespace).List(ctx, metav1.ListOptions{})
		if err == nil && len(pods.Items)+map[bool]int{true: 1}[l.exists("early")] > 0 {
			err = errors.New("it is not empty")
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if err := l.create("late"); !apierrors.IsForbidden(err) {
		t.Errorf("create in the empty namespace: error %v; want Forbidden, namespace terminating", err)
	}
	heal()
	after, err := l.admin.CoreV1().Namespaces().Get(t.Context(), l.namespace, metav1.GetOptions{})
	if err != nil || after.UID == before.UID {
		t.Errorf("after healing: namespace %+v, error %v; want a new one", after, err)
	}
	if err := l.createPod("late", nil); err != nil {
		t.Errorf("after healing: %v", err)
	}
	if l.fired() != 1 {
		t.Errorf("fired %d times, want once", l.fired())
	}
}

// onceTried returns the number of occurrences of an Event. An Event of events.k8s.io has this
// number in series.count, not in count.
func onceTried(event *corev1.Event) int32 {
	n := max(1, event.Count)
	if event.Series != nil {
		n = max(n, event.Series.Count)
	}
	return n
}

// TestPodPending checks that a new pod gets no node until the fault is healed, and that the
// fault fires once. The fault must not affect a pod whose name lacks the prefix, or a pod that
// has a node.
func TestPodPending(t *testing.T) {
	l := startLive(t)
	l.runPod("web-early", ready)
	heal := l.inject("pod-pending", "prefix: web-")
	l.runPod("web-late", func(pod *corev1.Pod) bool { return has(pod, corev1.PodScheduled, corev1.ConditionFalse) })
	l.runPod("shop", ready)
	l.awaitFired()
	tries := func() (n int32) {
		t.Helper()
		events, err := l.admin.CoreV1().Events(l.namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=FailedScheduling"})
		if err != nil {
			t.Fatal(err)
		}
		for _, event := range events.Items {
			n += onceTried(&event)
		}
		return n
	}
	if err := l.poll("a second try", func(context.Context) error {
		if tries() < 2 {
			return errors.New("no second try yet")
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	late := l.pod("web-late")
	if late.Status.Phase != corev1.PodPending || late.Spec.NodeName != "" || !ready(l.pod("web-early")) {
		t.Errorf("the later pod is %v, want it Pending without a node, and the earlier pod ready", late)
	}
	if l.fired() != 1 {
		t.Errorf("fired %d times, want once", l.fired())
	}
	heal()
	l.awaitPod("web-late", ready)
}

// TestPodPendingTwice checks that two faults of type pod-pending can be active at the same time.
// The second fault must remain after the first one is healed.
func TestPodPendingTwice(t *testing.T) {
	l := startLive(t)
	healFirst := l.inject("pod-pending", "prefix: web-")
	healSecond := l.inject("pod-pending", "prefix: web-")
	healFirst()
	l.runPod("web", ready)
	l.runPod("web-late", func(pod *corev1.Pod) bool { return has(pod, corev1.PodScheduled, corev1.ConditionFalse) })
	healSecond()
	l.awaitPod("web-late", ready)
}

// TestNameTakenDenied checks that the fault name-taken has no effect, and does not fail, while a
// policy denies its ReplicaSets.
func TestNameTakenDenied(t *testing.T) {
	l := startLive(t)
	owner := l.commit("web")
	heal := l.inject("admission-denied", "{resource: replicasets.apps, reason: Forbidden}")
	l.inject("name-taken", "{template: same, times: 1}")
	for _, denied := range []bool{true, false} {
		_, err := l.subject.AppsV1().ReplicaSets(l.namespace).Create(t.Context(), replicaSet("web-1", owner), metav1.CreateOptions{})
		if denied != apierrors.IsForbidden(err) || denied == apierrors.IsAlreadyExists(err) {
			t.Errorf("create with the policy %v: error %v; want Forbidden with it, and AlreadyExists without it", denied, err)
		}
		heal()
	}
	for _, record := range l.All() {
		if record.Fault != nil && record.Fault.Event == history.FaultFailed {
			t.Errorf("a fault failed: %s", record.Fault.Detail)
		}
	}
}
