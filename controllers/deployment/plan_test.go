package deployment

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
)

func TestSizeOf(t *testing.T) {
	set := func(replicas *int32, available int32, annotations map[string]string) *appsv1.ReplicaSet {
		set := &appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{Replicas: replicas}, Status: appsv1.ReplicaSetStatus{AvailableReplicas: available}}
		set.Annotations = annotations
		return set
	}
	sizedFor := func(desired, most string) annotations {
		return annotations{desiredReplicasAnnotation: desired, maxReplicasAnnotation: most}
	}
	tests := []struct {
		name string
		set  *appsv1.ReplicaSet
		want size
	}{
		{"annotations present", set(new(int32(5)), 4, sizedFor("7", "9")), size{replicas: 5, available: 4, desiredReplicas: 7, maxReplicas: 9}},
		{"pods above replicas do not count as available", set(new(int32(2)), 5, sizedFor("7", "9")), size{replicas: 2, available: 2, desiredReplicas: 7, maxReplicas: 9}},
		{"malformed annotations", set(new(int32(2)), 2, sizedFor("x", "-1")), size{replicas: 2, available: 2, desiredReplicas: none}},
		{"no annotations", set(new(int32(0)), 0, nil), size{desiredReplicas: none}},
		{"annotations with 0", set(new(int32(0)), 0, sizedFor("0", "0")), size{}},
		{"replicas not set", set(nil, 0, nil), size{replicas: 1, desiredReplicas: none}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, sizeOf(test.set), cmp.AllowUnexported(size{})); diff != "" {
				t.Errorf("size (-want +got):\n%s", diff)
			}
		})
	}
}
