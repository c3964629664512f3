package workload

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// build returns the object of the given name that a create asks for.
func build(create *scenario.Create, name, namespace string, controller *metav1.OwnerReference) runtime.Object {
	meta := metav1.ObjectMeta{Name: name, Namespace: namespace}
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: create.Labels},
		Spec:       podSpec(),
	}
	switch create.Kind {
	case scenario.ReplicaSet:
		return &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{
			Replicas:        ptr.To(int32(*create.Replicas)),
			MinReadySeconds: int32(create.MinReadySeconds),
			Selector:        &metav1.LabelSelector{MatchLabels: create.Selector},
			Template:        template,
		}}
	case scenario.ReplicationController:
		return &corev1.ReplicationController{ObjectMeta: meta, Spec: corev1.ReplicationControllerSpec{
			Replicas:        ptr.To(int32(*create.Replicas)),
			MinReadySeconds: int32(create.MinReadySeconds),
			Selector:        create.Selector,
			Template:        &template,
		}}
	default:
		meta.Labels = create.Labels
		if controller != nil {
			meta.OwnerReferences = []metav1.OwnerReference{*controller}
		}
		return &corev1.Pod{ObjectMeta: meta, Spec: template.Spec}
	}
}

// podSpec is a pod that does nothing, asks for nothing, and goes when told to.
func podSpec() corev1.PodSpec {
	return corev1.PodSpec{
		Containers:                    []corev1.Container{{Name: "pause", Image: "registry.k8s.io/pause:3.10"}},
		AutomountServiceAccountToken:  ptr.To(false),
		EnableServiceLinks:            ptr.To(false),
		TerminationGracePeriodSeconds: ptr.To[int64](1),
	}
}
