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
)

// replicaSet is one without pods.
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

// TestNameTaken: the subject's create is answered by the API server itself, since
// another ReplicaSet is there. Nobody else's name is taken, and no more than asked.
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
				t.Errorf("a ReplicaSet of somebody else: %v", err)
			}
			for _, name := range []string{"web-1", "web-2"} {
				if err := create(replicaSet(name, owner)); !apierrors.IsAlreadyExists(err) {
					t.Errorf("%s: %v; expected that there is one already", name, err)
				}
				other, err := l.admin.AppsV1().ReplicaSets(l.namespace).Get(t.Context(), name, metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				same := template == "same"
				if metav1.IsControlledBy(other, owner) || (metav1.GetControllerOf(other) != nil) != same ||
					(other.Labels["app"] == "web") != same || (other.Spec.Template.Spec.Containers[0].Name == "pause") != same {
					t.Errorf("%s was taken by %+v", name, other)
				}
			}
			if err := create(replicaSet("web-3", owner)); err != nil {
				t.Errorf("a third: %v", err)
			}
			if l.fired() != 2 {
				t.Errorf("fired %d times, want 2", l.fired())
			}
			heal()
			if err := create(replicaSet("web-1", owner)); !apierrors.IsAlreadyExists(err) {
				t.Errorf("what took the name is gone after healing: %v", err)
			}
		})
	}
}

// createPod has the subject create a pod that a ConfigMap controls, or none does.
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

// TestQuotaExhausted: so many pods more are let in, and no others until another
// goes, or the fault is healed.
func TestQuotaExhausted(t *testing.T) {
	l := startLive(t)
	l.runPod("early", ready)
	heal := l.inject("quota-exhausted", "left: 2")
	for _, name := range []string{"a", "b"} {
		if err := l.createPod(name, nil); err != nil {
			t.Errorf("pod %s: %v", name, err)
		}
	}
	if err := l.createPod("c", nil); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "exceeded quota") {
		t.Errorf("a pod too many: %v; expected that the quota is exceeded", err)
	}
	if err := l.create("config"); err != nil {
		t.Errorf("a ConfigMap: %v", err)
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
		t.Errorf("after healing: %v", err)
	}
	if l.fired() != 1 {
		t.Errorf("fired %d times, want once", l.fired())
	}
}

// TestAdmissionDenied: what has a controller is denied, with the reason asked for,
// and all else is let in.
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
			l.runPod("early", ready) // the namespace lets pods in
			heal := l.inject("admission-denied", "{resource: "+test.resource+", reason: "+test.reason+"}")
			create := func(resource, name string, owner *corev1.ConfigMap) error {
				if resource == "pods" {
					return l.createPod(name, owner)
				}
				_, err := l.subject.AppsV1().ReplicaSets(l.namespace).Create(t.Context(), replicaSet(name, owner), metav1.CreateOptions{})
				return err
			}
			if err := create(test.resource, "a", owner); !test.denied(err) || !strings.Contains(err.Error(), "denied request: objects with a controller are denied") {
				t.Errorf("one of %s: %v", test.resource, err)
			}
			if err := l.createPod("free", nil); err != nil {
				t.Errorf("a pod without a controller: %v", err)
			}
			other := map[string]string{"pods": "replicasets.apps", "replicasets.apps": "pods"}[test.resource]
			if err := create(other, "b", owner); err != nil {
				t.Errorf("one of %s: %v", other, err)
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

// TestNamespaceTerminating: what is in the namespace goes, nothing new is let in
// though it is empty, and after healing there is another.
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
		t.Errorf("a pod: %v; expected that the namespace is terminating", err)
	}
	err = l.poll("an empty namespace", func(ctx context.Context) error {
		pods, err := l.admin.CoreV1().Pods(l.namespace).List(ctx, metav1.ListOptions{})
		if err == nil && len(pods.Items)+map[bool]int{true: 1}[l.exists("early")] > 0 {
			err = errors.New("it is not")
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if err := l.create("late"); !apierrors.IsForbidden(err) {
		t.Errorf("a ConfigMap in the empty namespace: %v; expected that it is terminating", err)
	}
	heal()
	after, err := l.admin.CoreV1().Namespaces().Get(t.Context(), l.namespace, metav1.GetOptions{})
	if err != nil || after.UID == before.UID {
		t.Errorf("after healing it is %+v, %v; expected another", after, err)
	}
	if err := l.createPod("late", nil); err != nil {
		t.Errorf("after healing: %v", err)
	}
	if l.fired() != 1 {
		t.Errorf("fired %d times, want once", l.fired())
	}
}

// onceTried is how often what an event tells of has happened: one that was sent as of
// events.k8s.io counts in its series, and has no count besides.
func onceTried(event *corev1.Event) int32 {
	n := max(1, event.Count)
	if event.Series != nil {
		n = max(n, event.Series.Count)
	}
	return n
}

// TestPodPending: a new pod finds no node until the fault is healed, is one firing
// however often the scheduler tries, and those of other names, and those that have a
// node, are left alone.
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
			return errors.New("there was none")
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	late := l.pod("web-late")
	if late.Status.Phase != corev1.PodPending || late.Spec.NodeName != "" || !ready(l.pod("web-early")) {
		t.Errorf("the late one is %v", late)
	}
	if l.fired() != 1 {
		t.Errorf("fired %d times, want once", l.fired())
	}
	heal()
	l.awaitPod("web-late", ready)
}
