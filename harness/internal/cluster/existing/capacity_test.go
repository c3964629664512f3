package existing

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestFreeCapacity checks that freeCapacity ignores unschedulable nodes and subtracts existing
// pods.
func TestFreeCapacity(t *testing.T) {
	node := func(name string, pods int64, taints ...corev1.Taint) corev1.Node {
		return corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       corev1.NodeSpec{Taints: taints},
			Status: corev1.NodeStatus{
				Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
				Allocatable: corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(pods, resource.DecimalSI)},
			},
		}
	}
	existingPods := []corev1.Pod{{Spec: corev1.PodSpec{NodeName: "a"}}, {Spec: corev1.PodSpec{NodeName: "a"}}, {Spec: corev1.PodSpec{NodeName: "cp"}}}
	controlPlane := node("cp", 110, corev1.Taint{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule})
	preferred := node("b", 50, corev1.Taint{Key: "busy", Effect: corev1.TaintEffectPreferNoSchedule})
	cordoned := node("c", 110)
	cordoned.Spec.Unschedulable = true
	for _, test := range []struct {
		name  string
		nodes []corev1.Node
		want  int
		err   string
	}{
		{"no nodes", nil, 0, "the cluster has no nodes"},
		{"only a control plane node", []corev1.Node{controlPlane}, 0, "node cp has taint node-role.kubernetes.io/control-plane"},
		{"only a cordoned node", []corev1.Node{cordoned}, 0, "node c is cordoned"},
		{"nodes with pods", []corev1.Node{controlPlane, node("a", 110), preferred, cordoned}, 158, ""},
	} {
		got, err := freeCapacity(test.nodes, existingPods)
		if got != test.want || fmt.Sprint(err) != test.err && (err != nil || test.err != "") {
			t.Errorf("%s: freeCapacity() = %d, error %v; want %d, error %q", test.name, got, err, test.want, test.err)
		}
	}
}
