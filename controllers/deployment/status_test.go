package deployment

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func rolloutOf(t testing.TB, d *appsv1.Deployment, sets ...*appsv1.ReplicaSet) *rollout {
	t.Helper()
	l, err := limitsOf(d)
	if err != nil {
		t.Fatal(err)
	}
	r := &rollout{deployment: d, limits: l, now: now}
	r.setSets(sets)
	return r
}

func TestCountReplicas(t *testing.T) {
	d := newDeployment(3, image("v2"), func(d *appsv1.Deployment) { d.Generation, d.Status.CollisionCount = 7, new(int32(2)) })
	busy := func(set *appsv1.ReplicaSet) *appsv1.ReplicaSet {
		set.Status = appsv1.ReplicaSetStatus{Replicas: 4, ReadyReplicas: 3, AvailableReplicas: 2, TerminatingReplicas: new(int32(5)), ObservedGeneration: 1}
		return set
	}
	var got appsv1.DeploymentStatus
	got.CollisionCount = d.Status.CollisionCount
	rolloutOf(t, d, newSetOf(d, "v1", 1, 4, busy), newSetOf(d, "v2", 2, 3, withAvailablePods(1))).countReplicas(&got)
	want := appsv1.DeploymentStatus{
		ObservedGeneration: 7, Replicas: 5, UpdatedReplicas: 1, ReadyReplicas: 4, AvailableReplicas: 3, UnavailableReplicas: 4,
		TerminatingReplicas: new(int32(5)), CollisionCount: new(int32(2)),
		Conditions: []appsv1.DeploymentCondition{{
			Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable", Message: "Deployment has minimum availability.",
			LastUpdateTime: metav1.NewTime(now), LastTransitionTime: metav1.NewTime(now),
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

func TestReplicaCountsAreNeverNegative(t *testing.T) {
	d := newDeployment(1)
	var got appsv1.DeploymentStatus
	rolloutOf(t, d, newSetOf(d, "v1", 1, 1, withAvailablePods(3))).countReplicas(&got)
	if got.UnavailableReplicas != 0 || got.AvailableReplicas != 3 {
		t.Errorf("%d unavailable, %d available; want 0 and 3", got.UnavailableReplicas, got.AvailableReplicas)
	}
}

func TestAvailability(t *testing.T) {
	tests := []struct {
		name   string
		change func(*appsv1.Deployment)
		have   int32
		want   corev1.ConditionStatus
	}{
		{"all", surgeAndUnavailable(1, 0), 3, corev1.ConditionTrue},
		{"one less than replicas", surgeAndUnavailable(1, 0), 2, corev1.ConditionFalse},
		{"exactly minAvailable", surgeAndUnavailable(1, 1), 2, corev1.ConditionTrue},
		{"one less than minAvailable", surgeAndUnavailable(1, 1), 1, corev1.ConditionFalse},
		{"Recreate needs all replicas", asRecreate, 2, corev1.ConditionFalse},
		{"0 replicas", scaled(0), 0, corev1.ConditionTrue},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := newDeployment(3, test.change)
			status := rolloutOf(t, d, newSetOf(d, "v1", 1, 3, withAvailablePods(test.have))).status()
			if got := findCondition(status.Conditions, appsv1.DeploymentAvailable); got.Status != test.want {
				t.Errorf("condition Available: %s, want %s", got.Status, test.want)
			}
		})
	}
}

func TestTerminating(t *testing.T) {
	of := func(count *int32, observed int64) *appsv1.ReplicaSet {
		return &appsv1.ReplicaSet{Status: appsv1.ReplicaSetStatus{TerminatingReplicas: count, ObservedGeneration: observed}}
	}
	tests := []struct {
		name string
		sets []*appsv1.ReplicaSet
		want *int32
	}{
		{"no ReplicaSets", nil, new(int32(0))},
		{"the sum", []*appsv1.ReplicaSet{of(new(int32(2)), 1), of(new(int32(3)), 1)}, new(int32(5))},
		{"ReplicaSet with an unobserved generation", []*appsv1.ReplicaSet{of(new(int32(2)), 1), of(nil, 0)}, new(int32(2))},
		{"ReplicaSet without terminatingReplicas", []*appsv1.ReplicaSet{of(new(int32(2)), 1), of(nil, 1)}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, terminatingReplicas(test.sets)); diff != "" {
				t.Errorf("terminating (-want +got):\n%s", diff)
			}
		})
	}
}
