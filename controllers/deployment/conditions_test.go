package deployment

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func failing(reason string) func(*appsv1.ReplicaSet) *appsv1.ReplicaSet {
	return func(set *appsv1.ReplicaSet) *appsv1.ReplicaSet {
		set.Status.Conditions = []appsv1.ReplicaSetCondition{{
			Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Reason: reason, Message: "quota", LastTransitionTime: metav1.NewTime(now.Add(-time.Hour)),
		}}
		return set
	}
}

func TestReplicaFailure(t *testing.T) {
	d := newDeployment(1, image("v3"))
	tests := []struct {
		name string
		sets []*appsv1.ReplicaSet
		want string // reason of the expected condition
	}{
		{"none", []*appsv1.ReplicaSet{newSetOf(d, "v1", 1, 0), newSetOf(d, "v3", 3, 1)}, ""},
		{"new ReplicaSet takes precedence", []*appsv1.ReplicaSet{newSetOf(d, "v1", 1, 0, failing("old")), newSetOf(d, "v3", 3, 1, failing("new"))}, "new"},
		{"condition of an old ReplicaSet", []*appsv1.ReplicaSet{newSetOf(d, "v1", 1, 0, failing("oldest")), newSetOf(d, "v2", 2, 1, failing("old")), newSetOf(d, "v3", 3, 1)}, "oldest"},
		{"no new ReplicaSet", []*appsv1.ReplicaSet{newSetOf(d, "v2", 2, 1, failing("old"))}, "old"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := rolloutOf(t, d, test.sets...)
			r.estimateProgress = true
			got := findCondition(r.status().Conditions, appsv1.DeploymentReplicaFailure)
			if test.want == "" {
				if got != nil {
					t.Errorf("condition %v, want none", got)
				}
				return
			}
			then := metav1.NewTime(now.Add(-time.Hour))
			want := &appsv1.DeploymentCondition{
				Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: test.want, Message: "quota", LastUpdateTime: then, LastTransitionTime: then,
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("condition (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReplicaFailureIsRemoved(t *testing.T) {
	d := newDeployment(1)
	d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue}, {Type: "Mine"}}
	r := rolloutOf(t, d, newSetOf(d, "v1", 1, 1, withAvailablePods(1)))
	r.estimateProgress = true
	conditions := r.status().Conditions
	if findCondition(conditions, appsv1.DeploymentReplicaFailure) != nil {
		t.Error("condition ReplicaFailure was not removed")
	}
	if findCondition(conditions, "Mine") == nil {
		t.Error("a condition of another type was removed")
	}
	if len(d.Status.Conditions) != 2 {
		t.Error("the cached Deployment was modified")
	}
}

func TestWithCondition(t *testing.T) {
	at := func(status corev1.ConditionStatus, reason, message string, ago, transition time.Duration) appsv1.DeploymentCondition {
		return appsv1.DeploymentCondition{
			Type: appsv1.DeploymentProgressing, Status: status, Reason: reason, Message: message,
			LastUpdateTime: metav1.NewTime(now.Add(-ago)), LastTransitionTime: metav1.NewTime(now.Add(-transition)),
		}
	}
	before := at("True", "A", "first", time.Hour, time.Hour)
	tests := []struct {
		name string
		with func([]appsv1.DeploymentCondition, appsv1.DeploymentCondition) []appsv1.DeploymentCondition
		c    appsv1.DeploymentCondition
		want appsv1.DeploymentCondition
	}{
		{"status differs", withCondition, at("False", "B", "m", 0, 0), at("False", "B", "m", 0, 0)},
		{"reason differs: lastTransitionTime stays", withCondition, at("True", "B", "m", 0, 0), at("True", "B", "m", 0, time.Hour)},
		{"same status and reason: nothing changes", withCondition, at("True", "A", "m", 0, 0), before},
		{"same status and reason, refreshed", withRefreshedCondition, at("True", "A", "m", 0, 0), at("True", "A", "m", 0, time.Hour)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			all := []appsv1.DeploymentCondition{{Type: "Other"}, before}
			if diff := cmp.Diff([]appsv1.DeploymentCondition{{Type: "Other"}, test.want}, test.with(all, test.c)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, all[1]); diff != "" {
				t.Errorf("the argument was modified (-before +after):\n%s", diff)
			}
		})
	}
}
