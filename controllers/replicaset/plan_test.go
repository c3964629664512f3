package replicaset

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

func TestPlan(t *testing.T) {
	for _, test := range []struct {
		wanted, active int
		want           step
	}{
		{0, 0, step{}},
		{3, 3, step{}},
		{3, 0, step{creates: 3}},
		{3, 2, step{creates: 1}},
		{500, 0, step{creates: 500}},
		{501, 0, step{creates: 500}},
		{1200, 1000, step{creates: 200}},
		{0, 3, step{deletes: 3}},
		{2, 3, step{deletes: 1}},
		{0, 1200, step{deletes: 500}},
	} {
		if got := plan(test.wanted, test.active, Burst); got != test.want {
			t.Errorf("plan(%d wanted, %d active) = %+v, want %+v", test.wanted, test.active, got, test.want)
		}
	}
}

// TestPlanProperties checks that a step never both creates and deletes, and never exceeds burst
// or the desired number. An empty step means that the number of pods is correct, so repeated
// steps converge.
func TestPlanProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		wanted := rapid.IntRange(0, 5000).Draw(t, "wanted")
		active := rapid.IntRange(0, 5000).Draw(t, "active")
		burst := rapid.IntRange(1, 600).Draw(t, "burst")
		got := plan(wanted, active, burst)
		switch after := active + got.creates - got.deletes; {
		case got.creates < 0 || got.deletes < 0 || got.creates > burst || got.deletes > burst:
			t.Fatalf("%+v is outside 0..%d", got, burst)
		case got.creates > 0 && got.deletes > 0:
			t.Fatalf("%+v both creates and deletes", got)
		case active < wanted && (after <= active || after > wanted):
			t.Fatalf("%+v leads from %d active pods to %d, wanted %d", got, active, after, wanted)
		case active > wanted && (after >= active || after < wanted):
			t.Fatalf("%+v leads from %d active pods to %d, wanted %d", got, active, after, wanted)
		case active == wanted && got != step{}:
			t.Fatalf("%+v although the number of pods is correct", got)
		}
	})
}

func TestNextAvailable(t *testing.T) {
	now := time.Unix(10000, 0)
	readyFor := func(ages ...time.Duration) []*corev1.Pod {
		var pods []*corev1.Pod
		for _, age := range ages {
			pods = append(pods, &corev1.Pod{Status: corev1.PodStatus{Conditions: readySince(now.Add(-age))}})
		}
		return pods
	}
	notReady := &corev1.Pod{}
	for _, test := range []struct {
		name     string
		pods     []*corev1.Pod
		minReady time.Duration
		want     time.Duration
		wantOK   bool
	}{
		{"no pods", nil, time.Minute, 0, false},
		{"not ready", []*corev1.Pod{notReady}, time.Minute, 0, false},
		{"all available", readyFor(time.Minute, time.Hour), time.Minute, 0, false},
		{"available at once", readyFor(0), 0, 0, false},
		{"first of several pods", append(readyFor(10*time.Second, 50*time.Second, time.Hour), notReady), time.Minute, 10 * time.Second, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got, ok := nextAvailable(test.pods, test.minReady, now); got != test.want || ok != test.wantOK {
				t.Errorf("nextAvailable = %s, %t; want %s, %t", got, ok, test.want, test.wantOK)
			}
		})
	}
}

func readySince(since time.Time) []corev1.PodCondition {
	return []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(since)}}
}
