package testenv

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// ReplicaOwnerSpec describes a ReplicaSet or ReplicationController to create. The field Labels has
// the labels of the pods; nil means the label app with the object's name. If the field Selector is
// nil, the selector contains the same labels as the pods.
type ReplicaOwnerSpec struct {
	Kind, Name       string
	Replicas         int32
	MinReadySeconds  int32
	Selector, Labels map[string]string
	// Pods changes the pod template. It may be nil.
	Pods func(*corev1.PodTemplateSpec)
}

// Build returns the described ReplicaSet or ReplicationController. It sends no request.
func (s ReplicaOwnerSpec) Build() Object {
	meta := metav1.ObjectMeta{Name: s.Name, Labels: map[string]string{"app": s.Name}}
	template := PodTemplate(s.Name)
	if s.Labels != nil {
		template.Labels = s.Labels
	}
	if s.Selector == nil {
		s.Selector = template.Labels
	}
	if s.Pods != nil {
		s.Pods(&template)
	}
	if s.Kind == ReplicationControllerKind {
		return &corev1.ReplicationController{ObjectMeta: meta, Spec: corev1.ReplicationControllerSpec{
			Replicas: &s.Replicas, MinReadySeconds: s.MinReadySeconds, Selector: s.Selector, Template: &template,
		}}
	}
	return &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{
		Replicas: &s.Replicas, MinReadySeconds: s.MinReadySeconds, Template: template,
		Selector: &metav1.LabelSelector{MatchLabels: s.Selector},
	}}
}

// NewDeployment returns a Deployment whose pods have the label app=NAME. The edits change the
// Deployment before NewDeployment returns it.
func NewDeployment(name string, replicas int32, edits ...func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Template: PodTemplate(name),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
		},
	}
	for _, edit := range edits {
		edit(d)
	}
	return d
}

// NewService returns a Service with the port 80 and the named target port "http". The edits
// change the Service before NewService returns it.
func NewService(name string, selector map[string]string, edits ...func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{
		Selector: selector,
		Ports:    []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromString("http"), Protocol: corev1.ProtocolTCP}},
	}}
	for _, edit := range edits {
		edit(s)
	}
	return s
}

// NewEndpoints returns an Endpoints object with one ready address and the port 80.
func NewEndpoints(name, ip string) *rawEndpoints {
	e := &rawEndpoints{ObjectMeta: metav1.ObjectMeta{Name: name}}
	subset := slices.Grow(e.Subsets, 1)[:1]
	subset[0].Addresses = []corev1.EndpointAddress{{IP: ip}}
	subset[0].Ports = []corev1.EndpointPort{{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP}}
	e.Subsets = subset
	return e
}

// NewPod returns a pod without an owner, and sends no request. The pod has the given labels, and
// otherwise the fields of PodTemplate. The edits change the template before NewPod makes the pod
// from it.
func NewPod(name string, labels map[string]string, edits ...func(*corev1.PodTemplateSpec)) *corev1.Pod {
	template := PodTemplate(name)
	template.Labels = labels
	for _, edit := range edits {
		edit(&template)
	}
	template.Name = name
	return &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
}

// PodTemplate returns a pod template with the pause image and the label app=NAME.
func PodTemplate(name string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{
				Name: "pause", Image: "registry.k8s.io/pause:3.10",
				Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
			}},
			AutomountServiceAccountToken:  ptr.To(false),
			EnableServiceLinks:            ptr.To(false),
			TerminationGracePeriodSeconds: ptr.To[int64](1),
		},
	}
}

// Unschedulable makes the pods of a template unschedulable: their node selector matches no node.
// The pods stay Pending, and no kubelet overwrites the status that a Ginkgo spec writes.
func Unschedulable(pods *corev1.PodTemplateSpec) {
	pods.Spec.NodeSelector = map[string]string{"gauntlet/node": "none"}
}

// Finalizer is a finalizer that keeps deleted objects terminating until the Ginkgo spec removes
// the finalizer.
const Finalizer = "gauntlet/stays"

// WithFinalizer adds Finalizer to the pods of a template. Deleted pods then stay terminating until
// the Ginkgo spec removes the finalizer.
func WithFinalizer(pods *corev1.PodTemplateSpec) { pods.Finalizers = []string{Finalizer} }

// UnschedulableWithFinalizer makes the pods of a template unschedulable, and adds Finalizer to
// them. See [Unschedulable] and [WithFinalizer].
func UnschedulableWithFinalizer(pods *corev1.PodTemplateSpec) {
	Unschedulable(pods)
	WithFinalizer(pods)
}

// OnMissingNode assigns the pods of a template to a node that does not exist, so no kubelet
// updates them. It also adds Finalizer, so that deleted pods stay terminating.
//
// The pod garbage collector sets the phase of these pods to Failed only after 40 seconds.
// Terminating pods without a node, such as those of UnschedulableWithFinalizer, become Failed
// immediately.
func OnMissingNode(pods *corev1.PodTemplateSpec) {
	pods.Spec.NodeName = "none"
	pods.Spec.TerminationGracePeriodSeconds = ptr.To[int64](0)
	WithFinalizer(pods)
}
