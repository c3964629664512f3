package catalog

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// TestClockSkew checks that the controller under test receives shifted timestamps in responses,
// lists and watches, in JSON and protobuf. When the controller updates an object, the API server
// must store the original timestamps.
func TestClockSkew(t *testing.T) {
	for _, encoding := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		t.Run(encoding, func(t *testing.T) {
			t.Parallel()
			l := startLive(t)
			config := rest.CopyConfig(l.config)
			config.ContentType, config.AcceptContentTypes = encoding, encoding
			l.subject = l.clientOf(config)
			l.runPod("a", ready)
			heal := l.inject("clock-skew", "ahead: 1m")
			if l.fired() > 0 {
				t.Error("fired before the subject received an object")
			}
			l.skewedPods(time.Minute)
			set := l.writesBack()
			heal()
			if l.fired() != 2 { // the fault fires once for the pod and once for the ReplicaSet
				t.Errorf("fired %d times, want 2", l.fired())
			}
			l.skewedPods(0)
			set.Labels["healed"] = "yes" // set still has shifted timestamps, although the fault is healed
			if _, err := l.subject.AppsV1().ReplicaSets(l.namespace).Update(t.Context(), set, metav1.UpdateOptions{}); err != nil {
				t.Errorf("updating after healing: %v", err)
			}
		})
	}
}

// skewedPods checks the timestamps of the pods that the controller under test receives. The
// timestamps must be shifted by the given duration.
func (l *live) skewedPods(by time.Duration) {
	l.t.Helper()
	ctx, t := l.t.Context(), l.t
	times := func(client kubernetes.Interface, read func(kubernetes.Interface) *corev1.Pod) []time.Time {
		pod := read(client)
		at := []time.Time{pod.CreationTimestamp.Time, pod.Status.StartTime.Time}
		for _, condition := range pod.Status.Conditions {
			at = append(at, condition.LastTransitionTime.Time)
		}
		return at
	}
	for name, read := range map[string]func(kubernetes.Interface) *corev1.Pod{
		"get": func(client kubernetes.Interface) *corev1.Pod {
			pod, err := client.CoreV1().Pods(l.namespace).Get(ctx, "a", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return pod
		},
		"list": func(client kubernetes.Interface) *corev1.Pod {
			pods, err := client.CoreV1().Pods(l.namespace).List(ctx, metav1.ListOptions{})
			if err != nil || len(pods.Items) != 1 {
				t.Fatalf("listing the pods: got %d pods, error %v; want 1 pod and no error", len(pods.Items), err)
			}
			return &pods.Items[0]
		},
		"watch": func(client kubernetes.Interface) *corev1.Pod {
			events, err := client.CoreV1().Pods(l.namespace).Watch(ctx, metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer events.Stop()
			event := <-events.ResultChan()
			pod, ok := event.Object.(*corev1.Pod)
			if !ok || event.Type != watch.Added {
				t.Fatalf("first watch event: got %s with a %T, want ADDED with a pod", event.Type, event.Object)
			}
			return pod
		},
	} {
		original, received := times(l.admin, read), times(l.subject, read)
		for i := range original {
			if shift := received[i].Sub(original[i]); shift != by {
				t.Errorf("%s: timestamp %d is shifted by %v, want %v", name, i, shift, by)
			}
		}
	}
}

// writesBack creates, reads and updates a ReplicaSet through the fault proxy. It returns the
// ReplicaSet as the controller under test received it.
func (l *live) writesBack() *appsv1.ReplicaSet {
	l.t.Helper()
	sets, ctx := l.subject.AppsV1().ReplicaSets(l.namespace), l.t.Context()
	made, err := sets.Create(ctx, replicaSet("web", l.commit("owner")), metav1.CreateOptions{})
	if err != nil {
		l.t.Fatal(err)
	}
	made.Labels["touched"] = "yes"
	set, err := sets.Update(ctx, made, metav1.UpdateOptions{})
	if err != nil {
		l.t.Fatalf("updating the object: %v", err)
	}
	set.Status.Replicas = 3
	if set, err = sets.UpdateStatus(ctx, set, metav1.UpdateOptions{}); err != nil {
		l.t.Fatalf("updating the status: %v", err)
	}
	stored, err := l.admin.AppsV1().ReplicaSets(l.namespace).Get(ctx, "web", metav1.GetOptions{})
	if err != nil {
		l.t.Fatal(err)
	}
	if shift := set.CreationTimestamp.Sub(stored.CreationTimestamp.Time); shift != time.Minute || stored.Labels["touched"] != "yes" || stored.Status.Replicas != 3 {
		l.t.Errorf("creationTimestamp is shifted by %v, want 1m; stored labels %v and %d replicas, want touched=yes and 3", shift, stored.Labels, stored.Status.Replicas)
	}
	return set
}
