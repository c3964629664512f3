package workload

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// TestBuild verifies the object that build returns for each field of a create operation. It
// ignores the spec of the pods.
func TestBuild(t *testing.T) {
	app := map[string]string{"app": "web"}
	template := func(annotations map[string]string) corev1.PodTemplateSpec {
		return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: app, Annotations: annotations}, Spec: Pods{}.spec()}
	}
	meta := metav1.ObjectMeta{Name: "web", Namespace: namespace}
	labeled := metav1.ObjectMeta{Name: "web", Namespace: namespace, Labels: app}
	http := []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromString("http"), Protocol: corev1.ProtocolTCP}}
	for _, test := range []struct {
		create string
		want   runtime.Object
	}{
		{"kind: ReplicaSet, name: web, replicas: 3, minReadySeconds: 2", &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{
			Replicas: ptr.To[int32](3), MinReadySeconds: 2, Selector: &metav1.LabelSelector{MatchLabels: app}, Template: template(nil)}}},
		{"kind: ReplicationController, name: web, replicas: 3, minReadySeconds: 2", &corev1.ReplicationController{ObjectMeta: meta, Spec: corev1.ReplicationControllerSpec{
			Replicas: ptr.To[int32](3), MinReadySeconds: 2, Selector: app, Template: ptr.To(template(nil))}}},
		{"kind: Deployment, name: web, replicas: 3", &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](3), Selector: &metav1.LabelSelector{MatchLabels: app}, Template: template(nil),
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType}}}},
		{"kind: Deployment, name: web, replicas: 3, version: v1, maxSurge: 2, maxUnavailable: 10%, minReadySeconds: 1, revisionHistoryLimit: 0, progressDeadlineSeconds: 9, paused: true",
			&appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
				Replicas: ptr.To[int32](3), MinReadySeconds: 1, Selector: &metav1.LabelSelector{MatchLabels: app},
				Template: template(map[string]string{versionAnnotation: "v1"}), Paused: true,
				RevisionHistoryLimit: ptr.To[int32](0), ProgressDeadlineSeconds: ptr.To[int32](9),
				Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{
					MaxSurge: ptr.To(intstr.FromInt32(2)), MaxUnavailable: ptr.To(intstr.FromString("10%"))}}}}},
		{"kind: Deployment, name: web, replicas: 3, strategy: Recreate", &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](3), Selector: &metav1.LabelSelector{MatchLabels: app}, Template: template(nil),
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}}}},
		{"kind: Pod, name: web", &corev1.Pod{ObjectMeta: labeled, Spec: Pods{}.spec()}},
		{"kind: Service, name: web, selector: {app: web}", &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, Selector: app, Ports: http}}},
		{"kind: Service, name: web, labels: {app: web}, headless: true, publishNotReadyAddresses: true, ports: []", &corev1.Service{ObjectMeta: labeled, Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, ClusterIP: corev1.ClusterIPNone, PublishNotReadyAddresses: true}}},
		{"kind: Service, name: web, externalName: example.com", &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeExternalName, ExternalName: "example.com"}}},
	} {
		got := build(steps(t, "  - create: {"+test.create+"}\n")[0].Operation.(*scenario.Create), "web", namespace, nil, Pods{}.spec())
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.create, diff)
		}
	}
}

// TestBuildEndpoints verifies that only a create operation with leader sets the leader-election
// annotation. The Endpoints controller ignores Endpoints with this annotation.
func TestBuildEndpoints(t *testing.T) {
	for create, wantLeader := range map[string]bool{"kind: Endpoints, name: web": false, "kind: Endpoints, name: web, leader: true": true} {
		got := build(steps(t, "  - create: {"+create+"}\n")[0].Operation.(*scenario.Create), "web", namespace, nil, Pods{}.spec()).(*endpoints)
		if _, leader := got.Annotations[leaderAnnotation]; leader != wantLeader || len(got.Subsets) != 1 {
			t.Errorf("%s: %+v; want a record of a leader %t, and an address", create, got, wantLeader)
		}
	}
}
