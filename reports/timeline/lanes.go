package timeline

import (
	"cmp"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// The resources whose objects get lanes, or that lanes are for.
const (
	pods        = "pods"
	replicaSets = "replicasets.apps"
	deployments = "deployments.apps"
	controllers = "replicationcontrollers"
	services    = "services"
	endpoints   = "endpoints"
	leases      = "leases.coordination.k8s.io"
	eventsOld   = "events"
	eventsNew   = "events.events.k8s.io"
)

// resourceOf is the resource of the owners that controllerRefs name.
var resourceOf = map[string]string{"ReplicaSet": replicaSets, "ReplicationController": controllers, "Deployment": deployments}

// laneOrder is where a lane stands among those of its group.
type laneOrder struct {
	family string // of a Deployment, say, with all that it made
	depth  int    // 0 for the owner, more for what it owns
	name   string
}

func (o laneOrder) compare(p laneOrder) int {
	return cmp.Or(strings.Compare(o.family, p.family), cmp.Compare(o.depth, p.depth), strings.Compare(o.name, p.name))
}

// lane returns the place of the lane of that name, and makes it if need be.
// Such lanes stay in the order in which they were made.
func (b *builder) lane(group Group, name string) int {
	return b.laneIn(group, name, "", laneOrder{})
}

func (b *builder) laneIn(group Group, name, resource string, order laneOrder) int {
	if place, ok := b.lanes[name]; ok {
		return place
	}
	place := len(b.t.Lanes)
	b.lanes[name] = place
	b.t.Lanes = append(b.t.Lanes, Lane{Group: group, Name: name, Resource: resource})
	if _, learned := b.orders[name]; !learned {
		b.orders[name] = order
	}
	return place
}

// objectLane is the lane of an object: its own, or for a pod that of all pods of
// its owner.
func (b *builder) objectLane(o *history.Object) int {
	switch {
	case o.Namespace != b.t.Start.Namespace: // the subject watches all of them
		return b.lane(Subject, "other namespaces")
	case o.Resource != pods:
		return b.laneIn(Objects, b.title(o.Ref), o.Resource, b.orderOf(o))
	}
	h := b.homeOf(o)
	return b.laneIn(Objects, h.lane, pods, h.order)
}

// home is the lane of a pod.
type home struct {
	lane  string
	order laneOrder
}

// homeOf is the home of a pod. Its first version decides.
func (b *builder) homeOf(o *history.Object) home {
	title := b.title(o.Ref)
	if h, ok := b.homes[title]; ok && o.Name != "" {
		return h
	}
	owner, order := "nobody", laneOrder{family: "~"} // behind all others
	if ref := o.ControllerRef(); ref != nil {
		owner = ref.Kind + " " + ref.Name
		if resource, ok := resourceOf[ref.Kind]; ok {
			owner = resource + " " + ref.Name
			order = laneOrder{family: ref.Name}
			if known, ok := b.orders[owner]; ok {
				order = known
			}
			order.depth, order.name = order.depth+1, order.name+"\x00pods"
		}
	}
	h := home{"pods of " + owner, order}
	if o.Name != "" {
		b.homes[title] = h
	}
	return h
}

// refLane is the lane of an object of which only the name is known.
func (b *builder) refLane(ref history.Ref) int {
	return b.objectLane(&history.Object{Ref: ref})
}

// orderOf puts what a Deployment made behind it, and Endpoints behind their
// Service.
func (b *builder) orderOf(o *history.Object) laneOrder {
	order := laneOrder{family: o.Name, name: o.Resource + " " + o.Name}
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

// title names an object without the run's own namespace.
func (b *builder) title(ref history.Ref) string {
	if ref.Namespace == b.t.Start.Namespace {
		ref.Namespace = ""
	}
	return ref.String()
}
