package workload

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// build returns the object that a create operation creates, for a kind that is not generic. A
// generic kind is one whose create operation needs a manifest; see [scenario.Kind]. The argument
// pod is the spec of the pod, or of the pods of the object's pod template. The argument controller
// is an owner reference for the object, or nil.
func build(create *scenario.Create, name, namespace string, controller *metav1.OwnerReference, pod corev1.PodSpec) runtime.Object {
	meta := metav1.ObjectMeta{Name: name, Namespace: namespace}
	if controller != nil {
		meta.OwnerReferences = []metav1.OwnerReference{*controller}
	}
	return builders[create.Kind](create, meta, pod)
}

// builders has, for each kind that is not generic, a function that returns the object to create.
// A generic kind is one whose create operation needs a manifest; see [scenario.Kind].
var builders = map[scenario.Kind]func(*scenario.Create, metav1.ObjectMeta, corev1.PodSpec) runtime.Object{
	scenario.ReplicaSet:            buildReplicaSet,
	scenario.ReplicationController: buildReplicationController,
	scenario.Deployment:            buildDeployment,
	scenario.Pod:                   buildPod,
	scenario.Service:               buildService,
	scenario.Endpoints:             buildEndpoints,
}

func buildReplicaSet(create *scenario.Create, meta metav1.ObjectMeta, pod corev1.PodSpec) runtime.Object {
	return &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{
		Replicas:        ptr.To(int32(*create.Replicas)),
		MinReadySeconds: int32(create.MinReadySeconds),
		Selector:        create.LabelSelector(),
		Template:        podTemplate(create, pod),
	}}
}

func buildReplicationController(create *scenario.Create, meta metav1.ObjectMeta, pod corev1.PodSpec) runtime.Object {
	return &corev1.ReplicationController{ObjectMeta: meta, Spec: corev1.ReplicationControllerSpec{
		Replicas:        ptr.To(int32(*create.Replicas)),
		MinReadySeconds: int32(create.MinReadySeconds),
		Selector:        create.Selector,
		Template:        ptr.To(podTemplate(create, pod)),
	}}
}

func buildDeployment(create *scenario.Create, meta metav1.ObjectMeta, pod corev1.PodSpec) runtime.Object {
	spec := appsv1.DeploymentSpec{
		Replicas:                ptr.To(int32(*create.Replicas)),
		MinReadySeconds:         int32(create.MinReadySeconds),
		Selector:                create.LabelSelector(),
		Template:                podTemplate(create, pod),
		Strategy:                appsv1.DeploymentStrategy{Type: appsv1.DeploymentStrategyType(create.Strategy)},
		RevisionHistoryLimit:    toInt32(create.RevisionHistoryLimit),
		ProgressDeadlineSeconds: toInt32(create.ProgressDeadlineSeconds),
		Paused:                  create.Paused,
	}
	if create.MaxSurge != nil || create.MaxUnavailable != nil {
		spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{
			MaxSurge: intOrString(create.MaxSurge), MaxUnavailable: intOrString(create.MaxUnavailable),
		}
	}
	return &appsv1.Deployment{ObjectMeta: meta, Spec: spec}
}

func buildPod(create *scenario.Create, meta metav1.ObjectMeta, pod corev1.PodSpec) runtime.Object {
	meta.Labels = create.Labels
	return &corev1.Pod{ObjectMeta: meta, Spec: pod}
}

func buildService(create *scenario.Create, meta metav1.ObjectMeta, _ corev1.PodSpec) runtime.Object {
	meta.Labels = create.Labels
	spec := corev1.ServiceSpec{
		Type:                     corev1.ServiceTypeClusterIP,
		Selector:                 create.Selector,
		PublishNotReadyAddresses: create.PublishNotReadyAddresses,
	}
	if create.Headless {
		spec.ClusterIP = corev1.ClusterIPNone
	}
	if create.ExternalName != "" {
		spec.Type, spec.ExternalName = corev1.ServiceTypeExternalName, create.ExternalName
	}
	spec.Ports = servicePorts(create.Ports)
	return &corev1.Service{ObjectMeta: meta, Spec: spec}
}

func servicePorts(ports []scenario.Port) []corev1.ServicePort {
	var built []corev1.ServicePort
	for _, port := range ports {
		to := corev1.ServicePort{Name: port.Name, Port: int32(port.Port), Protocol: corev1.Protocol(port.Protocol)}
		if port.TargetPort != nil {
			to.TargetPort = port.TargetPort.IntStr()
		}
		built = append(built, to)
	}
	return built
}

// leaderAnnotation is the annotation in which leader election stores its record when it uses an
// Endpoints object as its lock.
const leaderAnnotation = "control-plane.alpha.kubernetes.io/leader"

// buildEndpoints returns an Endpoints object as a user would create it, without a Service. Its
// address is from the range 192.0.2.0/24, which is reserved for documentation.
func buildEndpoints(create *scenario.Create, meta metav1.ObjectMeta, _ corev1.PodSpec) runtime.Object {
	meta.Labels = create.Labels
	if create.Leader {
		held := time.Unix(0, 0).UTC().Format(time.RFC3339)
		meta.Annotations = map[string]string{leaderAnnotation: `{"holderIdentity":"` + meta.Name +
			`","leaseDurationSeconds":15,"acquireTime":"` + held + `","renewTime":"` + held + `","leaderTransitions":0}`}
	}
	return &endpoints{ObjectMeta: meta, Subsets: []endpointsSubset{{
		Addresses: []endpointAddress{{IP: "192.0.2.1"}},
		Ports:     []corev1.EndpointPort{{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP}},
	}}}
}

// versionAnnotation is the annotation of a pod template that contains the version, such as v2.
// Templates of different versions differ only in this annotation. Therefore a rollout needs no
// additional image on the nodes.
const versionAnnotation = "gauntlet/version"

// podTemplate returns the pod template for a create operation. It has the labels and the version
// of the operation, and the given pod spec.
func podTemplate(create *scenario.Create, pod corev1.PodSpec) corev1.PodTemplateSpec {
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: create.Labels}, Spec: pod}
	if create.Version != "" {
		template.Annotations = map[string]string{versionAnnotation: create.Version}
	}
	return template
}

// toInt32 converts an optional number to the type that the Kubernetes API uses. It returns nil
// for nil.
func toInt32(n *int) *int32 {
	if n == nil {
		return nil
	}
	return ptr.To(int32(*n))
}

// intOrString converts an optional value to the type that the Kubernetes API uses. It returns
// nil for nil.
func intOrString(x *scenario.IntOrString) *intstr.IntOrString {
	if x == nil {
		return nil
	}
	return ptr.To(x.IntStr())
}
