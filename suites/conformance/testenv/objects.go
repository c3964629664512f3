package testenv

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

// Pod is a pod in the namespace of a Ginkgo spec. String returns the fields that the controllers
// read.
type Pod struct{ *corev1.Pod }

// Ready reports whether the condition Ready of the pod is True.
func (p Pod) Ready() bool { return cluster.PodReady(p.Pod) }

// Terminating reports whether the pod has a deletion timestamp.
func (p Pod) Terminating() bool { return p.DeletionTimestamp != nil }

// Terminal reports whether the phase of the pod is Failed or Succeeded.
func (p Pod) Terminal() bool {
	return p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded
}

// Active reports whether the pod is neither terminating nor Failed nor Succeeded. Only active
// pods count as replicas.
func (p Pod) Active() bool { return !p.Terminating() && !p.Terminal() }

// Controller returns the kind and the name of the object that controls the pod. It returns the
// zero Ref if no object does.
func (p Pod) Controller() Ref { return controllerOf(p.Pod) }

// controllerOf returns the kind and the name of the object that controls o. It returns the zero
// Ref if no object does.
func controllerOf(o metav1.Object) Ref {
	if owner := metav1.GetControllerOfNoCopy(o); owner != nil {
		return Ref{owner.Kind, owner.Name}
	}
	return Ref{}
}

// String returns the name, phase, readiness, controller and labels of the pod.
func (p Pod) String() string {
	if p.Pod == nil {
		return "none"
	}
	words := []string{string(p.Status.Phase)}
	if p.Ready() {
		words = append(words, "ready")
	}
	if p.Terminating() {
		words = append(words, "terminating")
	}
	if owner := p.Controller(); owner.Name != "" {
		words = append(words, "controlled by "+owner.String())
	}
	return fmt.Sprintf("%s (%s, labels %v)", p.Name, strings.Join(words, ", "), p.Labels)
}

// Pods is a list of pods. String returns one line for each pod.
type Pods []Pod

// ControlledBy returns the pods that the given object controls.
func (p Pods) ControlledBy(ref Ref) Pods {
	return p.Filter(func(pod Pod) bool { return pod.Controller() == ref })
}

// Active returns the active pods.
func (p Pods) Active() Pods { return p.Filter(Pod.Active) }

// Filter returns the pods for which the given function returns true.
func (p Pods) Filter(matches func(Pod) bool) Pods {
	var some Pods
	for _, pod := range p {
		if matches(pod) {
			some = append(some, pod)
		}
	}
	return some
}

// Names returns the names of the pods, in the order of the list.
func (p Pods) Names() []string {
	names := []string{}
	for _, pod := range p {
		names = append(names, pod.Name)
	}
	return names
}

func (p Pods) String() string { return joinLines(p) }

// WithPods is an object together with pods. Specs compare the status of the object with the
// number of existing pods. A fixed number would be wrong, because a create with a lost response
// may add a surplus pod.
type WithPods[T fmt.Stringer] struct {
	Object T
	Pods   Pods
}

// String returns the object and its pods as text.
func (w WithPods[T]) String() string { return fmt.Sprintf("%s\n%s", w.Object, w.Pods) }

// joinLines returns the values as text, one per line. It returns "none" for an empty list.
func joinLines[T fmt.Stringer](all []T) string {
	if len(all) == 0 {
		return "none"
	}
	var lines []string
	for _, one := range all {
		lines = append(lines, one.String())
	}
	return strings.Join(lines, "\n")
}

// Condition is a status condition of an object of any kind.
type Condition struct{ Type, Status, Reason, Message string }

// findCondition returns the condition of the given type. It returns the zero Condition if there
// is none.
func findCondition(conditions []Condition, kind string) Condition {
	for _, c := range conditions {
		if c.Type == kind {
			return c
		}
	}
	return Condition{}
}

// ReplicaOwner is a ReplicaSet or a ReplicationController, with the fields that the two kinds
// share.
type ReplicaOwner struct {
	metav1.Object
	Ref                Ref
	Desired            int32
	Replicas           int32
	FullyLabeled       int32
	Ready              int32
	Available          int32
	Terminating        *int32 // nil for a ReplicationController, or if the field is not set
	ObservedGeneration int64
	MinReadySeconds    int32 // time for which a pod must be ready to count as available, in seconds
	Selector           map[string]string
	Template           corev1.PodTemplateSpec
	Conditions         []Condition
}

// fromReplicaSet converts a ReplicaSet to a ReplicaOwner.
func fromReplicaSet(rs *appsv1.ReplicaSet) *ReplicaOwner {
	set := &ReplicaOwner{
		Object: rs, Ref: RefOf(rs), Desired: ptr.Deref(rs.Spec.Replicas, 1),
		Replicas: rs.Status.Replicas, FullyLabeled: rs.Status.FullyLabeledReplicas, Ready: rs.Status.ReadyReplicas,
		Available: rs.Status.AvailableReplicas, Terminating: rs.Status.TerminatingReplicas,
		ObservedGeneration: rs.Status.ObservedGeneration, MinReadySeconds: rs.Spec.MinReadySeconds,
		Selector: rs.Spec.Selector.MatchLabels, Template: rs.Spec.Template,
	}
	for _, c := range rs.Status.Conditions {
		set.Conditions = append(set.Conditions, Condition{string(c.Type), string(c.Status), c.Reason, c.Message})
	}
	return set
}

// fromReplicationController converts a ReplicationController to a ReplicaOwner.
func fromReplicationController(rc *corev1.ReplicationController) *ReplicaOwner {
	set := &ReplicaOwner{
		Object: rc, Ref: RefOf(rc), Desired: ptr.Deref(rc.Spec.Replicas, 1),
		Replicas: rc.Status.Replicas, FullyLabeled: rc.Status.FullyLabeledReplicas, Ready: rc.Status.ReadyReplicas,
		Available:          rc.Status.AvailableReplicas,
		ObservedGeneration: rc.Status.ObservedGeneration, MinReadySeconds: rc.Spec.MinReadySeconds,
		Selector: rc.Spec.Selector, Template: *rc.Spec.Template,
	}
	for _, c := range rc.Status.Conditions {
		set.Conditions = append(set.Conditions, Condition{string(c.Type), string(c.Status), c.Reason, c.Message})
	}
	return set
}

// Condition returns the status condition of the given type. It returns the zero Condition if
// there is none.
func (s *ReplicaOwner) Condition(kind string) Condition { return findCondition(s.Conditions, kind) }

// Controller returns the kind and the name of the object that controls the ReplicaSet or
// ReplicationController. It returns the zero Ref if no object does.
func (s *ReplicaOwner) Controller() Ref { return controllerOf(s.Object) }

// Hash returns the value of the object's label pod-template-hash.
func (s *ReplicaOwner) Hash() string { return s.GetLabels()[appsv1.DefaultDeploymentUniqueLabelKey] }

func (s *ReplicaOwner) String() string {
	if s == nil {
		return "none"
	}
	text := fmt.Sprintf("%s: spec.replicas %d; status: %d replicas, %d fully labeled, %d ready, %d available; observed generation %d of %d",
		s.Ref, s.Desired, s.Replicas, s.FullyLabeled, s.Ready, s.Available, s.ObservedGeneration, s.GetGeneration())
	if s.Terminating != nil {
		text += fmt.Sprintf("; %d terminating", *s.Terminating)
	}
	if owner := s.Controller(); owner.Name != "" {
		text += "; controlled by " + owner.String()
	}
	for _, c := range s.Conditions {
		text += fmt.Sprintf("; %s=%s (%s)", c.Type, c.Status, c.Reason)
	}
	return text
}

// ReplicaSets is a list of ReplicaSets, oldest first.
type ReplicaSets []*ReplicaOwner

// ControlledBy returns the ReplicaSets that the given object controls.
func (s ReplicaSets) ControlledBy(ref Ref) ReplicaSets {
	return s.Filter(func(set *ReplicaOwner) bool { return set.Controller() == ref })
}

// Filter returns the ReplicaSets for which the given function returns true.
func (s ReplicaSets) Filter(matches func(*ReplicaOwner) bool) ReplicaSets {
	var some ReplicaSets
	for _, set := range s {
		if matches(set) {
			some = append(some, set)
		}
	}
	return some
}

// Desired returns the sum of spec.replicas of all ReplicaSets in the list.
func (s ReplicaSets) Desired() (sum int32) {
	for _, set := range s {
		sum += set.Desired
	}
	return sum
}

func (s ReplicaSets) String() string { return joinLines(s) }

// Deployment is a Deployment in the namespace of a Ginkgo spec. String returns its status.
type Deployment struct{ *appsv1.Deployment }

// Condition returns the status condition of the given type. It returns the zero Condition if
// there is none.
func (d *Deployment) Condition(kind string) Condition {
	for _, c := range d.Status.Conditions {
		if string(c.Type) == kind {
			return Condition{string(c.Type), string(c.Status), c.Reason, c.Message}
		}
	}
	return Condition{}
}

// Complete reports whether the rollout is complete. All pods must have the latest template and
// be available, and the status must be for the latest generation.
func (d *Deployment) Complete() bool {
	want := ptr.Deref(d.Spec.Replicas, 1)
	return d.Status.ObservedGeneration >= d.Generation &&
		d.Status.UpdatedReplicas == want && d.Status.Replicas == want && d.Status.AvailableReplicas == want
}

func (d *Deployment) String() string {
	if d == nil {
		return "none"
	}
	s := d.Status
	text := fmt.Sprintf("%s: spec.replicas %d; status: %d replicas, %d updated, %d ready, %d available, %d unavailable; observed generation %d of %d",
		RefOf(d.Deployment), ptr.Deref(d.Spec.Replicas, 1), s.Replicas, s.UpdatedReplicas, s.ReadyReplicas, s.AvailableReplicas, s.UnavailableReplicas,
		s.ObservedGeneration, d.Generation)
	if s.CollisionCount != nil {
		text += fmt.Sprintf("; %d collisions", *s.CollisionCount)
	}
	for _, c := range s.Conditions {
		text += fmt.Sprintf("; %s=%s (%s)", c.Type, c.Status, c.Reason)
	}
	return text
}

// Endpoints is an Endpoints object in the namespace of a Ginkgo spec. String returns its
// addresses.
type Endpoints struct{ *rawEndpoints }

// IPs returns the IPs of the ready addresses, or of the not-ready addresses if ready is false.
// The result is sorted and contains each IP once.
func (e *Endpoints) IPs(ready bool) []string {
	ips := []string{}
	if e == nil {
		return ips
	}
	for _, subset := range e.Subsets {
		addresses := subset.NotReadyAddresses
		if ready {
			addresses = subset.Addresses
		}
		for _, address := range addresses {
			ips = append(ips, address.IP)
		}
	}
	slices.Sort(ips)
	return slices.Compact(ips)
}

func (e *Endpoints) String() string {
	if e == nil || e.rawEndpoints == nil {
		return "none"
	}
	var subsets []string
	for _, subset := range e.Subsets {
		var ports, ready, not []string
		for _, port := range subset.Ports {
			ports = append(ports, fmt.Sprintf("%s %d/%s", port.Name, port.Port, port.Protocol))
		}
		for _, a := range subset.Addresses {
			ready = append(ready, a.IP)
		}
		for _, a := range subset.NotReadyAddresses {
			not = append(not, a.IP)
		}
		subsets = append(subsets, fmt.Sprintf("{ports %v, ready %s, not ready %s}", ports, abbreviate(ready), abbreviate(not)))
	}
	return fmt.Sprintf("%s: %s; labels %v; annotations %v", RefOf(e.rawEndpoints), strings.Join(subsets, " "), e.Labels, e.Annotations)
}

// abbreviate returns the first 6 elements of a list as text. If there are more, the text ends
// with their number.
func abbreviate(all []string) string {
	const most = 6
	if len(all) <= most {
		return fmt.Sprint(all)
	}
	return fmt.Sprintf("%v and %d more", all[:most], len(all)-most)
}
