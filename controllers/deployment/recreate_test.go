package deployment

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

func TestScaleOldToZero(t *testing.T) {
	f := replicaSetSizes{newIndex: 1, sizes: []size{{replicas: 2}, {replicas: 3}, {}, {replicas: 1}}}
	if diff := cmp.Diff([]change{{0, 0}, {3, 0}}, scaleOldToZero(f), unexportedFields); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if changes := scaleOldToZero(withoutNew(sizes())); len(changes) > 0 {
		t.Errorf("changes %v for no ReplicaSets", changes)
	}
}

func TestOldPodsStopped(t *testing.T) {
	d := newDeployment(1)
	empty, full := newSetOf(d, "v1", 1, 0), newSetOf(d, "v2", 2, 0, withAvailablePods(1))
	unseen := newSetOf(d, "v2", 2, 0, func(set *appsv1.ReplicaSet) *appsv1.ReplicaSet { set.Generation++; return set })
	pods := func(phases ...corev1.PodPhase) (pods []*corev1.Pod) {
		for _, phase := range phases {
			pods = append(pods, podOf(empty, "p", phase))
		}
		return pods
	}
	tests := []struct {
		name string
		old  []*appsv1.ReplicaSet
		pods []*corev1.Pod
		want bool
	}{
		{"no old ReplicaSets", nil, nil, true},
		{"no pods left", []*appsv1.ReplicaSet{empty}, nil, true},
		{"status still has replicas", []*appsv1.ReplicaSet{empty, full}, nil, false},
		{"generation not observed", []*appsv1.ReplicaSet{empty, unseen}, nil, false},
		{"pending", []*appsv1.ReplicaSet{empty}, pods(corev1.PodPending), false},
		{"running", []*appsv1.ReplicaSet{empty}, pods(corev1.PodRunning), false},
		{"unknown", []*appsv1.ReplicaSet{empty}, pods(corev1.PodUnknown), false},
		{"pod without a phase", []*appsv1.ReplicaSet{empty}, pods(""), false},
		{"terminal pods", []*appsv1.ReplicaSet{empty}, pods(corev1.PodFailed, corev1.PodSucceeded), true},
		{"running pod among terminal pods", []*appsv1.ReplicaSet{empty}, pods(corev1.PodFailed, corev1.PodRunning), false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := oldPodsStopped(test.old, test.pods); got != test.want {
				t.Errorf("oldPodsStopped = %t, want %t", got, test.want)
			}
		})
	}
}
