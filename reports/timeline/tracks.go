package timeline

import (
	"cmp"
	"slices"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// These resources need code of their own in this package. Pods share tracks (rows) and are
// counted in charts. A Service shares a chart with its Endpoints, whose track follows the
// Service's track. Requests for leases have a track of their own.
var (
	pods      = resourceOf(kube.Pod)
	services  = resourceOf(kube.Service)
	endpoints = resourceOf(kube.Endpoints)
	leases    = resourceOf("Lease")
)

// resourceOf returns the resource of a Kind, such as "pods" for Pod. Package kube must know the
// Kind.
func resourceOf(kind string) string {
	k, _ := kube.Named(kind)
	return k.Resource()
}

// isEvent reports whether a resource is events or events.events.k8s.io.
func isEvent(resource string) bool {
	k, _ := kube.ByResource(resource)
	return k.Name == "Event"
}

// trackOrder determines the position of a track (row of the timeline) in its group. Tracks are
// sorted by family, then by depth, then by name. After a Deployment, the timeline thus shows the
// Deployment's ReplicaSets, and then their pods.
type trackOrder struct {
	// family is the name of the topmost owner. For example, the ReplicaSets of the Deployment web
	// and their pods have the family web. An object without an owner has its own name as its
	// family. Objects with the same name are thus in one family.
	family string
	depth  int    // orders the tracks of a family: 0 for the topmost owner, higher for its dependents
	name   string // orders the tracks with the same family and depth
	// parent is empty if the fields family and depth are final. Otherwise, it is the title of an
	// owner, such as "deployments.apps web", and the two fields still depend on the position of
	// that owner's track. The method after then computes both fields, and sets parent to the
	// parent of the owner's position.
	parent string
	// below is how much deeper this track is than the owner's track. It is 0 if the field depth
	// does not depend on the owner's track.
	below int
}

// compare returns a negative number if the track with position o comes before the track with
// position p. It returns a positive number if the track with position o comes after the other. A
// track is a row of the timeline.
func (o trackOrder) compare(p trackOrder) int {
	return cmp.Or(strings.Compare(o.family, p.family), cmp.Compare(o.depth, p.depth), strings.Compare(o.name, p.name))
}

// after returns the position of a track (row of the timeline) that follows the track of its owner.
// The argument parent is the position of the owner's track. The result has the owner's family. If
// o.below is not 0, the result's depth is o.below more than the owner's depth.
//
// The owner's position may itself depend on a further owner. The result's field parent is then that
// further owner, and the caller must call after again.
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

// parentName is a placeholder in trackOrder.name, for rows of the timeline that are sorted by the
// name of their owner. The method after replaces it by the name in the owner's trackOrder.
const parentName = "\x00parent"

// These constants order the tracks (rows of the timeline) of a family, the objects below one
// topmost owner. The owner's track comes first, then the track of the owner's pods, then the tracks
// of the owner's other dependents.
const (
	podsBelow       = 1   // the depth of the pods' track minus the depth of the owner's track
	dependentsBelow = 2   // the depth of other dependents' tracks minus the depth of the owner's track
	routingDepth    = 100 // the depth of Services, higher than that of any workload such as a ReplicaSet
)

// depthOf returns trackOrder.depth for the track (row of the timeline) of an object that has no
// controllerRef.
//
// Objects of several Kinds may have the same name, and are then in one family. A Deployment web
// comes before a ReplicaSet web, because a Deployment can control a ReplicaSet. Kinds that send
// traffic to pods, such as Service, come last.
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

// track returns the index of the track (row of the timeline) with the given name. It adds the track
// if it is missing. Tracks that are added by this method are displayed in the order of the
// additions.
func (b *builder) track(group Group, name string) int {
	return b.orderedTrack(group, name, "", trackOrder{})
}

// orderedTrack returns the index of the track (row of the timeline) with the given name. If the
// track is missing, orderedTrack adds it with the given position. If the builder already knows a
// position for this name, that position is used.
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

// objectTrack returns the index of the track (row of the timeline) that shows an object. It adds
// the track if it is missing. The first of these rules that applies to the object decides:
//
//   - Cluster-scoped objects of one resource that package kube knows share a track.
//   - Objects in other namespaces share a track, and so do objects of a namespaced Kind whose
//     namespace is unknown.
//   - Events share a track.
//   - Pods of one owner share a track, and so do ControllerRevisions of one owner.
//   - Any other object has its own track.
func (b *builder) objectTrack(o *history.Object) int {
	kind, known := kube.ByResource(o.Resource)
	switch {
	case o.Namespace == "" && known && kind.ClusterScoped:
		return b.track(Subject, o.Resource)
	case o.Namespace != b.t.Start.Namespace && (known || o.Namespace != ""): // possible, because the subject watches all namespaces
		return b.track(Subject, "other namespaces")
	case isEvent(o.Resource):
		return b.track(Subject, "events")
	case kind.Role != kube.Child:
		return b.orderedTrack(Objects, b.title(o.Ref), o.Resource, b.orderOf(o, kind))
	}
	h := b.sharedTrackOf(o)
	return b.orderedTrack(Objects, h.track, o.Resource, h.order)
}

// sharedTrack is the name and the position of a track (row of the timeline) that shows several
// objects. The objects have the same Kind and owner, such as the pods of a ReplicaSet.
type sharedTrack struct {
	track string
	order trackOrder
}

// sharedTrackOf returns the track (row of the timeline) of all objects with the Kind and owner of
// the object o.
//
// The owner is that of the object's first version. If the owner changes later, for example
// because a controller adopts the object, the object stays on this track.
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

// orderAfter returns the position of a dependent's track (row of the timeline), which follows the
// track of the owner ref. The argument order has the values that do not depend on the owner's
// track.
//
// If the owner is not known yet, resolvedOrders completes the position later.
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

// refTrack returns the index of the track (row of the timeline) that shows the object to which ref
// refers. It does the same as objectTrack, but needs only the reference, not a version of the
// object.
func (b *builder) refTrack(ref history.Ref) int {
	return b.objectTrack(&history.Object{Ref: ref})
}

// orderOf returns the position of an object's own track (row of the timeline). The track follows
// the track of the object's controller.
//
// An Endpoints object has no controllerRef. Its track follows the track of the Service with the
// same name.
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

// resolvedOrders returns the final position of each track (row of the timeline), by the track's
// name.
//
// An owner may occur in the history after its dependents. The positions of the dependents' tracks
// are therefore completed at the end.
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

// title returns the resource and the name of an object, such as "pods web-x7k2p". It includes the
// namespace only if the object is not in the run's namespace.
func (b *builder) title(ref history.Ref) string {
	if ref.Namespace == b.t.Start.Namespace {
		ref.Namespace = ""
	}
	return ref.String()
}
