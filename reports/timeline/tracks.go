package timeline

import (
	"cmp"
	"slices"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// The resources that the timeline renders in a way of their own.
var (
	pods      = resourceOf(kube.Pod)
	services  = resourceOf(kube.Service)
	endpoints = resourceOf(kube.Endpoints)
	leases    = resourceOf("Lease")
)

// resourceOf returns the resource of a kind with a row in the registry.
func resourceOf(kind string) string {
	k, _ := kube.Named(kind)
	return k.Resource()
}

// isEvent reports whether a resource is that of events, in either of their API groups.
func isEvent(resource string) bool {
	k, _ := kube.ByResource(resource)
	return k.Name == "Event"
}

// trackOrder is the position of a track in its group.
type trackOrder struct {
	family string // groups related objects, such as a Deployment and all objects that it owns
	depth  int    // 0 for the owner, more for its dependents
	name   string
	// parent is the title of the object whose track precedes this one. It is empty if there
	// is none, or if family and depth already derive from that track.
	parent string
	// below is the depth of the track below the track of parent. If it is 0, depth does not
	// derive from parent.
	below int
}

func (o trackOrder) compare(p trackOrder) int {
	return cmp.Or(strings.Compare(o.family, p.family), cmp.Compare(o.depth, p.depth), strings.Compare(o.name, p.name))
}

// after returns the order with the family and the depth that derive from the parent's order.
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

// parentName in trackOrder.name stands for the name of the parent's order.
const parentName = "\x00parent"

// The depths of tracks in a family. The tracks of a workload's pods and of its other
// dependents come between those of two workloads.
const (
	podsBelow       = 1
	dependentsBelow = 2
	routingDepth    = 100 // more than that of any workload
)

// depthOf returns the depth of an object without a controllerRef. A kind that an object of
// another workload kind may control comes after that kind. Kinds that send traffic to pods
// come last.
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

// objectTrack returns the track of an object. The objects of a kind with the role Child,
// such as pods, share one track for each owner. Other objects have a track each.
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

// sharedTrack is the track of an object that shares it with others of the same owner.
type sharedTrack struct {
	track string
	order trackOrder
}

// sharedTrackOf returns the track of an object of a kind with the role Child. The owner in
// the first version of the object determines the track, so that the track stays the same if
// the owner changes.
func (b *builder) sharedTrackOf(o *history.Object) sharedTrack {
	title := b.title(o.Ref)
	if h, ok := b.sharedTracks[title]; ok && o.Name != "" {
		return h
	}
	h := sharedTrack{o.Resource + " of no owner", trackOrder{family: "~", name: o.Resource}} // ~ sorts after all other names
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

// titleOfOwner returns the title of the object that an owner reference names.
func (b *builder) titleOfOwner(ref *history.Owner) string {
	return b.owners.Resource(ref.UID, ref.Kind) + " " + ref.Name
}

// orderAfter returns the order of a track of dependents of an owner.
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

// refTrack returns the track of an object that is known only by its name.
func (b *builder) refTrack(ref history.Ref) int {
	return b.objectTrack(&history.Object{Ref: ref})
}

// orderOf returns the order of an object's track. It comes after the track of the object's
// controller. The Endpoints of a Service have no controllerRef, but the name of the Service.
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

// resolvedOrders returns the orders of all tracks, by name. It derives the order of a track
// from its parent's order if the parent was observed after the track was added.
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

// title returns the name of an object without the namespace of the run.
func (b *builder) title(ref history.Ref) string {
	if ref.Namespace == b.t.Start.Namespace {
		ref.Namespace = ""
	}
	return ref.String()
}
