package testenv

import (
	"cmp"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// View is what is in a namespace at one moment. It is for the length of one look.
type View struct{ store *store }

// objectsOf are the objects of a kind, by name.
func objectsOf[T Object](v *View, kind string) []T {
	var found []T
	for ref, object := range v.store.objects {
		if typed, ok := object.(T); ok && ref.Kind == kind {
			found = append(found, typed)
		}
	}
	slices.SortFunc(found, func(a, b T) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return found
}

// objectNamed is the object of that name; the zero value if there is none.
func objectNamed[T Object](v *View, kind, name string) T {
	object, _ := v.store.objects[Ref{kind, name}].(T)
	return object
}

// Has reports whether there is an object.
func (v *View) Has(ref Ref) bool { return v.store.objects[ref] != nil }

// Pods are all of the namespace, by name.
func (v *View) Pods() Pods {
	var pods Pods
	for _, pod := range objectsOf[*corev1.Pod](v, PodKind) {
		pods = append(pods, Pod{pod})
	}
	return pods
}

// ReplicaOwner is a ReplicaSet or ReplicationController; nil if there is none.
func (v *View) ReplicaOwner(ref Ref) *ReplicaOwner {
	if ref.Kind == ReplicationControllerKind {
		if rc := objectNamed[*corev1.ReplicationController](v, ref.Kind, ref.Name); rc != nil {
			return fromReplicationController(rc)
		}
		return nil
	}
	if rs := objectNamed[*appsv1.ReplicaSet](v, ReplicaSetKind, ref.Name); rs != nil {
		return fromReplicaSet(rs)
	}
	return nil
}

// ReplicaSets are all of the namespace, in the order in which they were made.
func (v *View) ReplicaSets() ReplicaSets {
	made := objectsOf[*appsv1.ReplicaSet](v, ReplicaSetKind)
	slices.SortFunc(made, func(a, b *appsv1.ReplicaSet) int { return v.store.firstSeen[a.UID] - v.store.firstSeen[b.UID] })
	var sets ReplicaSets
	for _, rs := range made {
		sets = append(sets, fromReplicaSet(rs))
	}
	return sets
}

// Deployment is the one of that name; nil if there is none.
func (v *View) Deployment(name string) *Deployment {
	if d := objectNamed[*appsv1.Deployment](v, DeploymentKind, name); d != nil {
		return &Deployment{d}
	}
	return nil
}

// Endpoints are those of that name; nil if there are none.
func (v *View) Endpoints(name string) *Endpoints {
	if e := objectNamed[*rawEndpoints](v, EndpointsKind, name); e != nil {
		return &Endpoints{e}
	}
	return nil
}

// Quota is the one of that name; nil if there is none.
func (v *View) Quota(name string) *corev1.ResourceQuota {
	return objectNamed[*corev1.ResourceQuota](v, resourceQuotaKind, name)
}

// EventsAbout are the events about an object: "Normal SuccessfulCreate
// (replicaset-controller): Created pod: web-x2x9j".
func (v *View) EventsAbout(ref Ref) []string {
	var found []string
	for _, event := range objectsOf[*corev1.Event](v, eventKind) {
		if about := event.InvolvedObject; ref == (Ref{about.Kind, about.Name}) {
			found = append(found, fmt.Sprintf("%s %s (%s): %s", event.Type, event.Reason, event.Source.Component, event.Message))
		}
	}
	return found
}

// recentEvents are the last of the namespace, for whoever reads of a failure.
func (v *View) recentEvents() []string {
	const most = 12
	events := objectsOf[*corev1.Event](v, eventKind)
	slices.SortFunc(events, func(a, b *corev1.Event) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	if len(events) > most {
		events = events[len(events)-most:]
	}
	var lines []string
	for _, e := range events {
		lines = append(lines, fmt.Sprintf("%s/%s: %s (%s): %s", e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Reason, e.Source.Component, e.Message))
	}
	return lines
}
