package interceptor

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

var startTime = time.Date(2026, 3, 1, 6, 0, 0, 0, time.UTC)

// TestSkewTimeMovesSecondsInOrder checks that a shift keeps the order of timestamps. skewTime
// must add the shift's whole seconds to all timestamps. It must add one more second to some of
// them: the share is the shift's fraction of a second.
func TestSkewTimeMovesSecondsInOrder(t *testing.T) {
	for _, test := range []struct {
		ahead       time.Duration
		least, most time.Duration
		later       float64 // share of the timestamps that are shifted by the larger number of seconds
	}{
		{10 * time.Second, 10 * time.Second, 10 * time.Second, 1},
		{-time.Minute, -time.Minute, -time.Minute, 1},
		{300 * time.Millisecond, 0, time.Second, 0.3},
		{-300 * time.Millisecond, -time.Second, 0, 0.7},
		{2700 * time.Millisecond, 2 * time.Second, 3 * time.Second, 0.7},
	} {
		const seconds = 10_000
		most := 0
		last := time.Time{}
		for i := range seconds {
			at := startTime.Add(time.Duration(i) * time.Second)
			skewed := skewTime(at, test.ahead)
			moved := skewed.Sub(at)
			if moved < test.least || moved > test.most || moved%time.Second != 0 {
				t.Fatalf("%v ahead: %v becomes %v, want a shift of whole seconds near the given one", test.ahead, at, skewed)
			}
			if skewed.Before(last) {
				t.Fatalf("%v ahead: %v becomes %v, which is before %v of an earlier timestamp", test.ahead, at, skewed, last)
			}
			if last = skewed; moved == test.most {
				most++
			}
		}
		if part := float64(most) / seconds; part < test.later-0.03 || part > test.later+0.03 {
			t.Errorf("%v ahead: %.2f of the timestamps are shifted by %v, want %.2f", test.ahead, part, test.most, test.later)
		}
	}
	if at := skewTime(time.Time{}, time.Hour); !at.IsZero() {
		t.Errorf("the zero time becomes %v, want it unchanged", at)
	}
}

// TestSkewBodyMovesServerTimesOnly checks that a clock skew shifts only timestamps that the API
// server and the nodes set. When the controller under test updates the object, restoreBody must
// restore the original timestamps.
func TestSkewBodyMovesServerTimesOnly(t *testing.T) {
	at := metav1.NewTime(startTime)
	later := metav1.NewTime(startTime.Add(time.Hour))
	set := &appsv1.ReplicaSet{
		TypeMeta:   metav1.TypeMeta{Kind: "ReplicaSet", APIVersion: "apps/v1"},
		ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "u1", CreationTimestamp: at, DeletionTimestamp: &later},
		Status:     appsv1.ReplicaSetStatus{Conditions: []appsv1.ReplicaSetCondition{{LastTransitionTime: at}}},
	}
	pods := &corev1.PodList{
		TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"},
		Items: []corev1.Pod{{
			ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u2", CreationTimestamp: at},
			Status: corev1.PodStatus{StartTime: &at, Conditions: []corev1.PodCondition{{LastTransitionTime: later}},
				ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}}}}},
		}},
	}
	minute := func(t metav1.Time) metav1.Time { return metav1.NewTime(t.Add(time.Minute)) }
	for in, name := range mediaTypes {
		p := &Interceptor{}
		var reported []string
		report := func(request uint64, ref *history.Ref) {
			reported = append(reported, fmt.Sprintf("%d %s %s", request, ref, ref.UID))
		}
		restore := p.SkewClock(time.Minute, report)
		skewed := func(obj runtime.Object) runtime.Object {
			t.Helper()
			body, err := encode(in, obj)
			if err != nil {
				t.Fatal(err)
			}
			moved, ok, err := p.skew.skewBody(requestRef{7, "things"}, in, body)
			if err != nil || !ok {
				t.Fatalf("%s: timestamps shifted: %t, error %v; want true and no error", name, ok, err)
			}
			seen, err := decode(in, moved)
			if err != nil {
				t.Fatal(err)
			}
			return seen
		}
		seen := skewed(set).(*appsv1.ReplicaSet)
		want := set.DeepCopy()
		want.CreationTimestamp = minute(at)
		want.DeletionTimestamp.Time = minute(later).Time
		same(t, name+": ReplicaSet", want, seen)

		list := skewed(pods).(*corev1.PodList)
		pod := pods.Items[0].DeepCopy()
		pod.CreationTimestamp, pod.Status.StartTime.Time = minute(at), minute(at).Time
		pod.Status.Conditions[0].LastTransitionTime = minute(later)
		pod.Status.ContainerStatuses[0].State.Running.StartedAt = minute(at)
		same(t, name+": pod", pod, &list.Items[0])

		restore()
		restore()
		if p.skew.offset() != 0 || len(p.skew.reporters) != 0 {
			t.Errorf("%s: after restore the shift is %v with %d reporters, want none", name, p.skew.offset(), len(p.skew.reporters))
		}
		if diff := cmp.Diff([]string{"7 things web u1", "7 things a u2"}, reported); diff != "" {
			t.Errorf("%s: reported objects (-want +got):\n%s", name, diff)
		}
		seen.Status.Replicas = 7 // the subject changes only the replicas, so everything else must be as before
		body, err := encode(in, seen)
		if err != nil {
			t.Fatal(err)
		}
		written, err := p.skew.restoreBody(&target{verb: "update", resource: "pods"}, in, body)
		if err != nil {
			t.Fatal(err)
		}
		stored, err := decode(in, written)
		if err != nil {
			t.Fatal(err)
		}
		original := set.DeepCopy()
		original.Status.Replicas = 7
		same(t, name+": written", original, stored)
	}
}

// same reports an error if two objects differ. The argument what names the objects.
func same(t *testing.T, what string, want, got runtime.Object) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b metav1.Time) bool { return a.Equal(&b) })); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// TestSkewLeavesStatusAndBookmarks checks that a clock skew changes neither a Status nor a
// bookmark.
func TestSkewLeavesStatusAndBookmarks(t *testing.T) {
	p := &Interceptor{}
	defer p.SkewClock(time.Minute, func(_ uint64, ref *history.Ref) { t.Errorf("reported %s, want none", ref) })()
	body, err := encode(jsonEncoding, &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Code: 404})
	if err != nil {
		t.Fatal(err)
	}
	if skewed, moved, err := p.skew.skewBody(requestRef{}, jsonEncoding, body); moved || err != nil || string(skewed) != string(body) {
		t.Errorf("a Status becomes %s, shifted: %t, error %v; want it unchanged", skewed, moved, err)
	}
	if event, err := encodeEvent(jsonEncoding, "BOOKMARK", &corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}}); err != nil {
		t.Error(err)
	} else if skewed, moved, err := p.skew.skewEvent(requestRef{}, jsonEncoding, event); moved || err != nil || string(skewed) != string(event) {
		t.Errorf("a bookmark becomes %s, shifted: %t, error %v; want it unchanged", skewed, moved, err)
	}
}
