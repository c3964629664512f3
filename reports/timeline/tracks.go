package timeline

import (
	"cmp"
	"slices"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// The resources for which the timeline has special rules.
var (
	pods      = resourceOf(kube.Pod)
	services  = resourceOf(kube.Service)
	endpoints = resourceOf(kube.Endpoints)
	leases    = resourceOf("Lease")
)

// resourceOf returns the resource of a kind that package kube knows.
func resourceOf(kind string) string {
	k, _ := kube.Named(kind)
	return k.Resource()
}

// isEvent reports whether a resource is events, in the core API group or in events.k8s.io.
func isEvent(resource string) bool {
	k, _ := kube.ByResource(resource)
	return k.Name == "Event"
}

// trackOrder determines the position of a track in its group. Tracks are sorted by family, then
// by depth, then by name.
type trackOrder struct {
	// family is a name that related objects have in common, such as a Deployment and all
	// objects that it owns.
	family string
	depth  int    // 0 for the owner at the top, higher for its dependents
	name   string // orders the tracks with the same family and depth
	// parent is the title of the owner whose track comes before this track. It is empty if
	// the object has no owner, or if family and depth already come from the owner's track.
	parent string
	// below is the difference between the depths of this track and of the owner's track. If
	// it is 0, the depth does not depend on the owner's track.
	below int
}

// compare returns a negative number if o comes before p, and a positive number if o comes after
// p.
func (o trackOrder) compare(p trackOrder) int {
	return cmp.Or(strings.Compare(o.family, p.family), cmp.Compare(o.depth, p.depth), strings.Compare(o.name, p.name))
}

// after returns the order with the family and the depth that follow from the order of the
// parent's track.
func (o trackOrder) after(parent trackOrder) trackOrder {
	o.family, o.parent = parent.family, parent.parent
	if o.below == 0 {
		return o
	}
	o.depth = parent.depth + o.below
	o.name = strings.ReplaceAll(o.name, parentName, parent.name)
	if parent.below == 0 {
		o.below = 0
	} else {
		o.below += parent.below
	}
	return o
}

// parentName is a placeholder in trackOrder.name for the name of the parent's order.
const parentName = "\x00parent"

// The depths of tracks in a family. Below the track of a workload object come first its
// pods, and then its other dependents.
const (
	podsBelow       = 1   // the depth of the pods' track below the owner's track
	dependentsBelow = 2   // the depth of the tracks of other dependents below the owner's track
	routingDepth    = 100 // the depth of Services, which is higher than that of any workload object
)

// depthOf returns the depth of an object that has no controllerRef. For example, a ReplicaSet
// is deeper than a Deployment, because a Deployment may control it. Kinds that send traffic to
// pods, such as Service, are the deepest.
func depthOf(kind kube.Kind) int {
	depth := 0
	if kind.Role == kube.Routing {
		depth = routingDepth
		if len(kind.Controls) == 0 {
			depth += dependentsBelow
		}
		return depth
	}
	for _, k := range kube.Kinds {
		if k.Role == kube.Workload && slices.Contains(k.Controls, kind.Name) {
			depth = max(depth, depthOf(k)+dependentsBelow)
		}
	}
	return depth
}

// track returns the index of the track with a name, and adds the track if it is missing. Such
// tracks are displayed in the order in which they were added.
func (b *builder) track(group Group, name string) int {
	return b.orderedTrack(group, name, "", trackOrder{})
}

// orderedTrack returns the index of the track with a name. If the track is missing,
// orderedTrack adds it with the given display order.
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

// objectTrack returns the track of an object. All objects of a kind with the role Child, such
// as pods, share one track for each owner. Any other object in the namespace of the run has its
// own track.
func (b *builder) objectTrack(o *history.Object) int {
	kind, known := kube.ByResource(o.Resource)
	switch {
	case o.Namespace == "" && known && kind.ClusterScoped:
		return b.track(Subject, o.Resource)
	case o.Namespace != b.t.Start.Namespace && (known || o.Namespace != ""): // the subject watches all namespaces
		return b.track(Subject, "other namespaces")
	case isEvent(o.Resource):
		return b.track(Subject, "events")
	case kind.Role != kube.Child:
		return b.orderedTrack(Objects, b.title(o.Ref), o.Resource, b.orderOf(o, kind))
	}
	h := b.sharedTrackOf(o)
	return b.orderedTrack(Objects, h.track, o.Resource, h.order)
}

// sharedTrack is the name and the display order of a track that several objects share. The
// objects have the same kind and the same owner, such as its pods.
type sharedTrack struct {
	track string
	order trackOrder
}

// sharedTrackOf returns the track of an object of a kind with the role Child. The track depends
// on the owner in the first version of the object. The object stays on this track if the owner
// changes.
func (b *builder) sharedTrackOf(o *history.Object) sharedTrack {
	title := b.title(o.Ref)
	if h, ok := b.sharedTracks[title]; ok && o.Name != "" {
		return h
	}
	h := sharedTrack{o.Resource + " of no owner", trackOrder{family: "~", name: o.Resource}} // ~ sorts last
	if ref := o.ControllerRef(); ref != nil {
		order := trackOrder{family: ref.Name, below: dependentsBelow, name: parentName + "\x00" + o.Resource}
		if o.Resource == pods {
			order.below = podsBelow
		}
		h.track = o.Resource + " of " + b.titleOfOwner(ref)
		h.order = b.orderAfter(ref, order)
	}
	if o.Name != "" {
		b.sharedTracks[title] = h
	}
	return h
}

// titleOfOwner returns the title of the object that an owner reference names, such as
// "replicasets.apps web".
func (b *builder) titleOfOwner(ref *history.Owner) string {
	return b.owners.Resource(ref.UID, ref.Kind) + " " + ref.Name
}

// orderAfter returns the order of a dependent's track, which comes after the track of the
// owner.
func (b *builder) orderAfter(ref *history.Owner, order trackOrder) trackOrder {
	order.parent = b.titleOfOwner(ref)
	if parent, known := b.orders[order.parent]; known {
		return order.after(parent)
	}
	if order.below > 0 {
		kind, _ := kube.ByResource(b.owners.Resource(ref.UID, ref.Kind))
		order.depth = depthOf(kind) + order.below
	}
	return order
}

// refTrack returns the track of an object of which only the resource, namespace and name are
// known.
func (b *builder) refTrack(ref history.Ref) int {
	return b.objectTrack(&history.Object{Ref: ref})
}

// orderOf returns the display order of an object's track, which comes after the track of the
// object's controller. An Endpoints object has no controllerRef, so it comes after the Service
// with its name.
func (b *builder) orderOf(o *history.Object, kind kube.Kind) trackOrder {
	order := trackOrder{family: o.Name, depth: depthOf(kind), name: o.Resource + " " + o.Name}
	ref := o.ControllerRef()
	if o.Resource == endpoints {
		ref = &history.Owner{Kind: kube.Service, Name: o.Name}
	}
	if ref == nil {
		return order
	}
	order.family = ref.Name
	if kind.Role != kube.Routing {
		order.below = dependentsBelow
	}
	return b.orderAfter(ref, order)
}

// resolvedOrders returns the display orders of all tracks, by name. If the owner of an object
// was observed only after the object, resolvedOrders now derives the order from the owner's
// track.
func (b *builder) resolvedOrders() map[string]trackOrder {
	resolved := map[string]trackOrder{}
	for name, order := range b.orders {
		for range len(b.orders) { // owner references may form a cycle
			parent, known := b.orders[order.parent]
			if order.parent == "" || !known {
				break
			}
			order = order.after(parent)
		}
		resolved[name] = order
	}
	return resolved
}

// title returns the resource and the name of an object. It includes the namespace only if that
// is not the namespace of the run.
func (b *builder) title(ref history.Ref) string {
	if ref.Namespace == b.t.Start.Namespace {
		ref.Namespace = ""
	}
	return ref.String()
}
