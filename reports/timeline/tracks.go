package timeline

import (
	"cmp"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// The resources that have tracks.
const (
	pods        = objects.PodResource
	replicaSets = objects.ReplicaSetResource
	deployments = objects.DeploymentResource
	controllers = objects.ReplicationControllerResource
	services    = objects.ServiceResource
	endpoints   = objects.EndpointsResource
	leases      = "leases.coordination.k8s.io"
	eventsOld   = "events"
	eventsNew   = "events.events.k8s.io"
)

// resourceOf maps the kind of a controllerRef to its resource.
var resourceOf = map[string]string{objects.ReplicaSetKind: replicaSets, objects.ReplicationControllerKind: controllers, objects.DeploymentKind: deployments}

// trackOrder is the position of a track in its group.
type trackOrder struct {
	family string // groups related objects, such as a Deployment and all objects that it owns
	depth  int    // 0 for the owner, more for its dependents
	name   string
}

func (o trackOrder) compare(p trackOrder) int {
	return cmp.Or(strings.Compare(o.family, p.family), cmp.Compare(o.depth, p.depth), strings.Compare(o.name, p.name))
}

// track returns the index of the track with a name, and adds the track if it is missing.
// Tracks that this method adds are displayed in the order in which they were added.
func (b *builder) track(group Group, name string) int {
	return b.orderedTrack(group, name, "", trackOrder{})
}

func (b *builder) orderedTrack(group Group, name, resource string, order trackOrder) int {
	if place, ok := b.tracks[name]; ok {
		return place
	}
	place := len(b.t.Tracks)
	b.tracks[name] = place
	b.t.Tracks = append(b.t.Tracks, Track{Group: group, Name: name, Resource: resource})
	if _, learned := b.orders[name]; !learned {
		b.orders[name] = order
	}
	return place
}

// objectTrack returns the track of an object. All pods of one owner share one track; other
// objects have a track each.
func (b *builder) objectTrack(o *history.Object) int {
	switch {
	case o.Namespace != b.t.Start.Namespace: // the subject watches all namespaces
		return b.track(Subject, "other namespaces")
	case o.Resource != pods:
		return b.orderedTrack(Objects, b.title(o.Ref), o.Resource, b.orderOf(o))
	}
	h := b.podTrackOf(o)
	return b.orderedTrack(Objects, h.track, pods, h.order)
}

// podTrack is the track of a pod.
type podTrack struct {
	track string
	order trackOrder
}

// podTrackOf returns the track of a pod. The owner in the first version of the pod
// determines the track, so that the track stays the same if the owner changes.
func (b *builder) podTrackOf(o *history.Object) podTrack {
	title := b.title(o.Ref)
	if h, ok := b.podTracks[title]; ok && o.Name != "" {
		return h
	}
	owner, order := "no owner", trackOrder{family: "~"} // sorts after all other names
	if ref := o.ControllerRef(); ref != nil {
		owner = ref.Kind + " " + ref.Name
		if resource, ok := resourceOf[ref.Kind]; ok {
			owner = resource + " " + ref.Name
			order = trackOrder{family: ref.Name}
			if known, ok := b.orders[owner]; ok {
				order = known
			}
			order.depth, order.name = order.depth+1, order.name+"\x00pods"
		}
	}
	h := podTrack{"pods of " + owner, order}
	if o.Name != "" {
		b.podTracks[title] = h
	}
	return h
}

// refTrack returns the track of an object that is known only by its name.
func (b *builder) refTrack(ref history.Ref) int {
	return b.objectTrack(&history.Object{Ref: ref})
}

// orderOf returns the track order of an object. ReplicaSets come after their Deployment,
// and Endpoints after their Service.
func (b *builder) orderOf(o *history.Object) trackOrder {
	order := trackOrder{family: o.Name, name: o.Resource + " " + o.Name}
	switch o.Resource {
	case replicaSets:
		order.depth = 2
		if ref := o.ControllerRef(); ref != nil && ref.Kind == "Deployment" {
			order.family = ref.Name
		}
	case services:
		order.depth = 8
	case endpoints:
		order.depth = 9
	}
	return order
}

// title returns the name of an object without the namespace of the run.
func (b *builder) title(ref history.Ref) string {
	if ref.Namespace == b.t.Start.Namespace {
		ref.Namespace = ""
	}
	return ref.String()
}
