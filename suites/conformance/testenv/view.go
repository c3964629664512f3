package testenv

import (
	"cmp"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// View contains the objects of a namespace at one point in time. Queries and invariants get a
// View as an argument. A View is invalid after the query or the invariant has returned.
type View struct{ store *store }

// objectsOf returns the objects of one kind in the Ginkgo spec's namespace, sorted by name. T is
// the Go type of this kind.
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

// objectNamed returns the object with the given kind and name in the Ginkgo spec's namespace. It
// returns nil if there is none. T is the Go type of the kind.
func objectNamed[T Object](v *View, kind, name string) T {
	object, _ := v.store.objects[Ref{kind, name}].(T)
	return object
}

// Has reports whether the object with this kind and name exists.
func (v *View) Has(ref Ref) bool { return v.store.objects[ref] != nil }

// Pods returns all pods of the namespace, sorted by name.
func (v *View) Pods() Pods {
	var pods Pods
	for _, pod := range objectsOf[*corev1.Pod](v, PodKind) {
		pods = append(pods, Pod{pod})
	}
	return pods
}

// ReplicaOwner returns the ReplicaSet or ReplicationController that ref identifies. It returns
// nil if this object does not exist.
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

// ReplicaSets returns all ReplicaSets of the namespace. The oldest ReplicaSet is the first one.
func (v *View) ReplicaSets() ReplicaSets {
	found := objectsOf[*appsv1.ReplicaSet](v, ReplicaSetKind)
	slices.SortFunc(found, func(a, b *appsv1.ReplicaSet) int { return v.store.firstSeen[a.UID] - v.store.firstSeen[b.UID] })
	var sets ReplicaSets
	for _, rs := range found {
		sets = append(sets, fromReplicaSet(rs))
	}
	return sets
}

// Deployment returns the Deployment with the given name. It returns nil if the Deployment does
// not exist.
func (v *View) Deployment(name string) *Deployment {
	if d := objectNamed[*appsv1.Deployment](v, DeploymentKind, name); d != nil {
		return &Deployment{d}
	}
	return nil
}

// Endpoints returns the Endpoints with the given name. It returns nil if the Endpoints do not
// exist.
func (v *View) Endpoints(name string) *Endpoints {
	if e := objectNamed[*rawEndpoints](v, EndpointsKind, name); e != nil {
		return &Endpoints{e}
	}
	return nil
}

// Quota returns the ResourceQuota with the given name. It returns nil if the ResourceQuota
// does not exist.
func (v *View) Quota(name string) *corev1.ResourceQuota {
	return objectNamed[*corev1.ResourceQuota](v, resourceQuotaKind, name)
}

// EventsAbout returns the Event objects about an object, as text. An example is "Normal
// SuccessfulCreate (replicaset-controller): Created pod: web-x2x9j".
func (v *View) EventsAbout(ref Ref) []string {
	var found []string
	for _, event := range objectsOf[*corev1.Event](v, eventKind) {
		if about := event.InvolvedObject; ref == (Ref{about.Kind, about.Name}) {
			found = append(found, fmt.Sprintf("%s %s (%s): %s", event.Type, event.Reason, event.Source.Component, event.Message))
		}
	}
	return found
}

// recentEvents returns the last 12 Event objects of the namespace as text, oldest first. Failure
// messages contain them.
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
