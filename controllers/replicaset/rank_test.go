package replicaset

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

var now = time.Unix(1_000_000, 0)

// oldPod returns a ready pod that was created long ago and is assigned to a node. The function
// change modifies the pod.
func oldPod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(now.Add(-100 * time.Hour))},
		Spec:       corev1.PodSpec{NodeName: "n1"},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, Conditions: readySince(now.Add(-100 * time.Hour))},
	}
	for _, c := range change {
		c(pod)
	}
	return pod
}

func unassigned(p *corev1.Pod) { p.Spec.NodeName = "" }
func notReady(p *corev1.Pod)   { p.Status.Conditions = nil }

func phase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}
func node(name string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.NodeName = name } }
func cost(cost string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.PodDeletionCost: cost} }
}
func ready(age time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Conditions = readySince(now.Add(-age)) }
}
func readyUnknownSince(p *corev1.Pod) { p.Status.Conditions = readySince(time.Time{}) }
func restarts(n int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.ContainerStatuses = []corev1.ContainerStatus{{RestartCount: n}} }
}
func sidecarRestarts(n int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{{Name: "proxy", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}}
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "proxy", RestartCount: n}}
	}
}
func age(age time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(now.Add(-age)) }
}

// TestDeletionOrder checks that each rule of the deletion order takes precedence over all later
// rules. Each case has two pods: one rule prefers the first pod, and all later rules prefer the
// second. The first pod must be deleted.
func TestDeletionOrder(t *testing.T) {
	relatedPods := map[string]int{"n1": 2, "crowded": 5}
	tests := []struct {
		rule        string
		first, last *corev1.Pod
	}{
		{"unassigned before assigned", oldPod("b", unassigned), oldPod("a", phase(corev1.PodPending), notReady, cost("-1"))},
		{"Pending before Unknown", oldPod("b", phase(corev1.PodPending)), oldPod("a", phase(corev1.PodUnknown), notReady)},
		{"Unknown before Running", oldPod("b", phase(corev1.PodUnknown)), oldPod("a", notReady, cost("-1"))},
		{"not ready before ready", oldPod("b", notReady, cost("9")), oldPod("a", cost("-1"), node("crowded"))},
		{"lower cost first", oldPod("b", cost("-1")), oldPod("a", node("crowded"), ready(time.Second))},
		{"no cost is 0", oldPod("b"), oldPod("a", cost("1"), node("crowded"))},
		{"a malformed cost is 0", oldPod("b", cost("007")), oldPod("a", cost("1"))},
		{"node with more related pods first", oldPod("b", node("crowded")), oldPod("a", ready(time.Second), restarts(9))},
		{"ready for a shorter time first", oldPod("b", ready(time.Hour)), oldPod("a", restarts(9), age(time.Second))},
		{"ready without lastTransitionTime first", oldPod("b", readyUnknownSince), oldPod("a", ready(time.Second), restarts(9))},
		{"more restarts first", oldPod("b", restarts(3)), oldPod("a", restarts(2), age(time.Second))},
		{"more restarts before more restarts of sidecars", oldPod("b", restarts(1)), oldPod("a", sidecarRestarts(9))},
		{"more restarts of sidecars first", oldPod("b", sidecarRestarts(3)), oldPod("a", sidecarRestarts(2), age(time.Second))},
		{"ready times with the same power of two are equal", oldPod("b", ready(90*time.Hour), restarts(1)), oldPod("a", ready(80*time.Hour))},
		{"newer first", oldPod("b", age(time.Hour)), oldPod("a")},
		{"ages with the same power of two are equal", oldPod("a", age(90*time.Hour)), oldPod("b", age(80*time.Hour))},
		{"then by UID", oldPod("a"), oldPod("b")},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			for _, pods := range [][]*corev1.Pod{{test.first, test.last}, {test.last, test.first}} {
				if got := podsToDelete(pods, 1, relatedPods, now); got[0] != test.first {
					t.Errorf("%s goes first, want %s", got[0].Name, test.first.Name)
				}
			}
		})
	}
}

func TestDeletionCost(t *testing.T) {
	for text, want := range map[string]int32{
		"": 0, "0": 0, "-0": 0, "5": 5, "-5": -5, "+5": 0, "05": 0, "5x": 0, "2147483647": 2147483647, "2147483648": 0,
	} {
		if got := deletionCost(oldPod("p", cost(text))); got != want {
			t.Errorf("cost %q is %d, want %d", text, got, want)
		}
	}
}

// FuzzDeletionCost checks that deletionCost returns the number in the annotation, or 0.
func FuzzDeletionCost(f *testing.F) {
	for _, text := range []string{"", "-0", "5", "-5", "-05", "+5", "05", "5x", "-", "2147483648"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		want, err := strconv.ParseInt(text, 10, 32)
		if written := strconv.FormatInt(want, 10); err != nil || !strings.HasPrefix(text, "-") && text != written {
			want = 0
		}
		if got := deletionCost(oldPod("p", cost(text))); int64(got) != want {
			t.Errorf("cost %q is %d, want %d", text, got, want)
		}
	})
}

func TestLogAge(t *testing.T) {
	for _, test := range []struct {
		since time.Time
		want  int
	}{
		{time.Time{}, -2},
		{now.Add(time.Second), -1},
		{now, -1},
		{now.Add(-1), 0},
		{now.Add(-2), 1},
		{now.Add(-3), 1},
		{now.Add(-4), 2},
	} {
		if got := logAge(test.since, now); got != test.want {
			t.Errorf("logAge(%s) = %d, want %d", test.since, got, test.want)
		}
	}
}

// drawPods draws pods with different values in all fields of rank, many of them equal.
func drawPods(t *rapid.T) []*corev1.Pod {
	ages := rapid.SampledFrom([]time.Duration{-time.Second, 0, 1, 3, time.Second, 1500 * time.Millisecond, time.Hour, 90 * time.Minute})
	n := rapid.IntRange(0, 12).Draw(t, "n")
	pods := make([]*corev1.Pod, n)
	for i := range pods {
		pods[i] = oldPod(fmt.Sprintf("p%d", i),
			node(rapid.SampledFrom([]string{"", "n1", "crowded"}).Draw(t, "node")),
			phase(rapid.SampledFrom([]corev1.PodPhase{corev1.PodPending, corev1.PodUnknown, corev1.PodRunning}).Draw(t, "phase")),
			rapid.SampledFrom([]func(*corev1.Pod){notReady, readyUnknownSince, ready(ages.Draw(t, "readyAge"))}).Draw(t, "ready"),
			cost(rapid.SampledFrom([]string{"", "1", "-1", "x"}).Draw(t, "cost")),
			restarts(rapid.Int32Range(0, 2).Draw(t, "restarts")),
			age(ages.Draw(t, "age")),
		)
	}
	return pods
}

func TestRankIsTotalOrder(t *testing.T) {
	relatedPods := map[string]int{"crowded": 3}
	rapid.Check(t, func(t *rapid.T) {
		var ranks []rank
		for _, pod := range drawPods(t) {
			ranks = append(ranks, rankOf(pod, relatedPods[pod.Spec.NodeName], now))
		}
		for i, a := range ranks {
			if a.compare(a) != 0 {
				t.Fatalf("%+v is not equal to itself", a)
			}
			for j, b := range ranks {
				if a.compare(b) != -b.compare(a) {
					t.Fatalf("compare(%+v, %+v) is not antisymmetric", a, b)
				}
				if i != j && a.compare(b) == 0 {
					t.Fatalf("%+v and %+v compare as equal although their UIDs differ", a, b)
				}
				for _, c := range ranks {
					if a.compare(b) < 0 && b.compare(c) < 0 && a.compare(c) >= 0 {
						t.Fatalf("compare of %+v, %+v, %+v is not transitive", a, b, c)
					}
				}
			}
		}
	})
}

// TestPodsToDeleteIgnoresListOrder checks that podsToDelete does not depend on the order of its
// argument. No kept pod may have a lower rank than a deleted pod.
func TestPodsToDeleteIgnoresListOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pods := drawPods(t)
		n := rapid.IntRange(0, len(pods)).Draw(t, "deletes")
		names := func(pods []*corev1.Pod) []string {
			var names []string
			for _, pod := range pods {
				names = append(names, pod.Name)
			}
			slices.Sort(names)
			return names
		}
		want := names(podsToDelete(pods, n, nil, now))
		shuffled := rapid.Permutation(pods).Draw(t, "shuffled")
		if diff := cmp.Diff(want, names(podsToDelete(shuffled, n, nil, now))); diff != "" {
			t.Fatalf("another order of the list changes the choice (-want +got):\n%s", diff)
		}
		if len(want) != n {
			t.Fatalf("%d pods chosen, want %d", len(want), n)
		}
	})
}
