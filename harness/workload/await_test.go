package workload

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

func TestReached(t *testing.T) {
	set := func(generation, observed int64, current, ready, available int32) *appsv1.ReplicaSet {
		return &appsv1.ReplicaSet{
			ObjectMeta: metav1.ObjectMeta{Generation: generation},
			Spec:       appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](3)},
			Status:     appsv1.ReplicaSetStatus{ObservedGeneration: observed, Replicas: current, ReadyReplicas: ready, AvailableReplicas: available},
		}
	}
	controller := func(current, ready int32) *corev1.ReplicationController {
		return &corev1.ReplicationController{
			Spec:   corev1.ReplicationControllerSpec{Replicas: ptr.To[int32](3)},
			Status: corev1.ReplicationControllerStatus{Replicas: current, ReadyReplicas: ready, AvailableReplicas: ready},
		}
	}
	deployment := func(updated, current, available int32) *appsv1.Deployment {
		return &appsv1.Deployment{
			Spec:   appsv1.DeploymentSpec{Replicas: ptr.To[int32](3)},
			Status: appsv1.DeploymentStatus{UpdatedReplicas: updated, Replicas: current, ReadyReplicas: available, AvailableReplicas: available},
		}
	}
	pod := func(phase corev1.PodPhase, ready corev1.ConditionStatus) *corev1.Pod {
		return &corev1.Pod{Status: corev1.PodStatus{Phase: phase, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}}}
	}
	served := func(ready, notReady int) *endpoints {
		return &endpoints{Subsets: []endpointsSubset{{
			Addresses: make([]endpointAddress, ready), NotReadyAddresses: make([]endpointAddress, notReady),
		}}}
	}
	terminatingSet := set(2, 2, 3, 3, 3)
	terminatingSet.DeletionTimestamp, terminatingSet.Finalizers = &metav1.Time{}, []string{"orphan"}

	for _, test := range []struct {
		name      string
		object    runtime.Object
		until     scenario.Until
		want      bool
		wantState string
	}{
		{"scaled", set(2, 2, 3, 0, 0), scenario.Scaled, true, "3 of 3 replicas, 0 ready, 0 available, observedGeneration 2 of 2"},
		{"not scaled", set(2, 2, 2, 2, 2), scenario.Scaled, false, "2 of 3 replicas, 2 ready, 2 available, observedGeneration 2 of 2"},
		{"an old status", set(2, 1, 3, 3, 3), scenario.Scaled, false, "3 of 3 replicas, 3 ready, 3 available, observedGeneration 1 of 2"},
		{"ready", set(2, 2, 3, 3, 0), scenario.Ready, true, "3 of 3 replicas, 3 ready, 0 available, observedGeneration 2 of 2"},
		{"not ready", set(2, 2, 3, 2, 0), scenario.Ready, false, "3 of 3 replicas, 2 ready, 0 available, observedGeneration 2 of 2"},
		{"ready, but too many replicas", set(2, 2, 4, 3, 3), scenario.Ready, false, "4 of 3 replicas, 3 ready, 3 available, observedGeneration 2 of 2"},
		{"available", set(2, 2, 3, 3, 3), scenario.Available, true, "3 of 3 replicas, 3 ready, 3 available, observedGeneration 2 of 2"},
		{"not available", set(2, 2, 3, 3, 2), scenario.Available, false, "3 of 3 replicas, 3 ready, 2 available, observedGeneration 2 of 2"},
		{"not gone", terminatingSet, scenario.Gone, false, "3 of 3 replicas, 3 ready, 3 available, observedGeneration 2 of 2, terminating with finalizers [orphan]"},
		{"gone", nil, scenario.Gone, true, "no such object"},
		{"ready, but gone", nil, scenario.Ready, false, "no such object"},
		{"a controller", controller(3, 3), scenario.Ready, true, "3 of 3 replicas, 3 ready, 3 available, observedGeneration 0 of 0"},
		{"a controller, not ready", controller(3, 1), scenario.Ready, false, "3 of 3 replicas, 1 ready, 1 available, observedGeneration 0 of 0"},
		{"a deployment", deployment(3, 3, 3), scenario.Complete, true, "3 updated, 3 of 3 replicas, 3 ready, 3 available, observedGeneration 0 of 0"},
		{"a deployment of old pods", deployment(2, 3, 3), scenario.Complete, false, "2 updated, 3 of 3 replicas, 3 ready, 3 available, observedGeneration 0 of 0"},
		{"a deployment with surge", deployment(3, 4, 4), scenario.Complete, false, "3 updated, 4 of 3 replicas, 4 ready, 4 available, observedGeneration 0 of 0"},
		{"a deployment, not available", deployment(3, 3, 2), scenario.Complete, false, "3 updated, 3 of 3 replicas, 2 ready, 2 available, observedGeneration 0 of 0"},
		{"available pods, but old ones", deployment(0, 3, 3), scenario.Available, true, "3 of 3 replicas, 3 ready, 3 available, observedGeneration 0 of 0"},
		{"a service that is not gone", &corev1.Service{}, scenario.Gone, false, "the object"},
		{"a ready pod", pod(corev1.PodRunning, corev1.ConditionTrue), scenario.Ready, true, "phase Running, ready true"},
		{"an unready pod", pod(corev1.PodRunning, corev1.ConditionFalse), scenario.Ready, false, "phase Running, ready false"},
		{"a new pod", &corev1.Pod{}, scenario.Ready, false, "phase , ready false"},
		{"served", served(2, 0), scenario.Served, true, "2 ready and 0 not ready addresses"},
		{"an address not ready", served(2, 1), scenario.Served, false, "2 ready and 1 not ready addresses"},
		{"no addresses", served(0, 0), scenario.Served, false, "0 ready and 0 not ready addresses"},
		{"a pod that is not gone", pod(corev1.PodRunning, corev1.ConditionTrue), scenario.Gone, false, "phase Running, ready true"},
	} {
		got, state := reached(test.object, test.until)
		if got != test.want || state != test.wantState {
			t.Errorf("%s:\n got %t, %s\nwant %t, %s", test.name, got, state, test.want, test.wantState)
		}
	}
}
