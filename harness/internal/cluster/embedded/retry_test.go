package embedded

import (
	"errors"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

// TestKubeletRetries runs a webhook that refuses the last delete of a pod, as that of a dead operator
// does. When the webhook is gone, KWOK must delete the pod.
func TestKubeletRetries(t *testing.T) {
	c, _ := startCluster(t, Options{Nodes: 1, Volumes: true})
	admin := clientFor(t, c, cluster.Admin)
	pod := createPod(t, admin, "retried")
	eventuallyPod(t, admin, pod.Name, "is Running", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })
	configurations := admin.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	_, err := configurations.Create(t.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "dead"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:                    "dead.example.com",
			ClientConfig:            admissionregistrationv1.WebhookClientConfig{URL: ptr.To("https://127.0.0.1:1/")},
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Delete},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			}},
			MatchConditions: []admissionregistrationv1.MatchCondition{{
				Name: "kubelet", Expression: "request.options.?gracePeriodSeconds.orValue(1) == 0",
			}},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	refused := func() bool { return strings.Contains(c.logTail("kwok"), "dead.example.com") }
	for refusedAt := 0; !refused(); refusedAt++ { // the API server needs a moment to learn of the webhook
		if refusedAt > 0 {
			pod = createPod(t, admin, pod.Name)
		}
		deletePod(t, admin, pod.Name)
		eventually(t, "KWOK has deleted the pod, or cannot delete it", func() bool {
			_, err := admin.CoreV1().Pods(pod.Namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
			return err != nil || refused()
		})
	}
	if err := configurations.Delete(t.Context(), "dead", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventuallyGone(t, admin, pod.Name)
}

// TestReconcilePod checks for which pods KWOK gets a second event, and when.
func TestReconcilePod(t *testing.T) {
	now := time.Unix(1000, 0)
	pending := func(edit func(*corev1.Pod)) *corev1.Pod {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", CreationTimestamp: metav1.NewTime(now.Add(-time.Second))},
			Spec:       corev1.PodSpec{NodeName: "node-1"}, Status: corev1.PodStatus{Phase: corev1.PodPending},
		}
		edit(pod)
		return pod
	}
	terminating := func(since time.Duration) *corev1.Pod {
		return pending(func(pod *corev1.Pod) {
			pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = ptr.To(metav1.NewTime(now.Add(30*time.Second-since))), ptr.To[int64](30)
		})
	}
	for name, test := range map[string]struct {
		pod         *corev1.Pod
		node        corev1.Node
		err         error
		first       time.Duration
		second      time.Duration
		wantPatches int
	}{
		"a pending pod":             {pod: pending(func(*corev1.Pod) {}), first: 7 * time.Second, wantPatches: 1},
		"a pod that waits for long": {pod: pending(func(pod *corev1.Pod) { pod.CreationTimestamp.Time = now.Add(-time.Minute) }), first: time.Minute, wantPatches: 1},
		"a terminating pod":         {pod: terminating(20 * time.Second), first: 20 * time.Second, wantPatches: 1},
		"an error":                  {pod: terminating(0), err: errors.New("refused"), first: 7 * time.Second, second: retryAfter, wantPatches: 1},
		"a paused kubelet":          {pod: terminating(0), node: corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{silentLabel: "yes"}}}, first: 7 * time.Second, second: retryAfter},
		"a running pod":             {pod: pending(func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodRunning })},
		"a pod without a node":      {pod: pending(func(pod *corev1.Pod) { pod.Spec.NodeName = "" })},
		"a stopped pod with a finalizer": {pod: pending(func(pod *corev1.Pod) {
			pod.Finalizers, pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = []string{"a"}, ptr.To(metav1.NewTime(now)), ptr.To[int64](0)
		})},
	} {
		t.Run(name, func(t *testing.T) {
			test.node.Name = "node-1"
			client, patches := fake.NewClientset(test.pod, &test.node), 0
			client.PrependReactor("patch", "pods", func(kubetesting.Action) (bool, runtime.Object, error) {
				patches++
				return true, test.pod, test.err
			})
			r := &kubeletRetries{client, testingclock.NewFakePassiveClock(now), 2 * time.Second, map[*corev1.Pod]bool{}}
			var got []time.Duration
			for range 2 {
				again, err := r.reconcile(t.Context(), test.pod)
				if err != nil {
					t.Fatal(err)
				}
				if got = append(got, again); again == 0 {
					break
				}
			}
			want := []time.Duration{test.first, test.second}[:len(got)]
			if got[0] != test.first || got[len(got)-1] != want[len(got)-1] || patches != test.wantPatches {
				t.Errorf("called again after %v with %d patches; want %v with %d", got, patches, want, test.wantPatches)
			}
			if left := len(r.waiting); left > 0 && got[len(got)-1] == 0 {
				t.Errorf("%d pods are waiting; want none", left)
			}
		})
	}
}
