package check

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// objectName is what an object can be asked for by.
type objectName struct{ resource, namespace, name string }

func newWorld() *world {
	return &world{
		pods:        map[types.UID]*pod{},
		owners:      map[types.UID]*owner{},
		deployments: map[types.UID]*deployment{},
		services:    map[types.UID]*service{},
		endpoints:   map[types.UID]*endpoints{},
		names:       map[objectName]types.UID{},
		controlled:  map[types.UID]map[types.UID]*pod{},
		orphans:     map[string]map[types.UID]*pod{},
		tallies:     map[types.UID]*tally{},
		sets:        map[types.UID]map[types.UID]*owner{},
		touched:     map[types.UID]touch{},
		published:   map[objectName]touch{},
		addresses:   map[types.UID]*address{},
		bereft:      map[objectName]bool{},
	}
}

// enter adds what a decoder returned, or replaces the version there is.
func (w *world) enter(object any) {
	switch o := object.(type) {
	case *pod:
		w.setPod(o)
	case *owner:
		w.setOwner(o)
	case *deployment:
		w.deployments[o.UID] = o
		w.names[nameOf(o.Ref)] = o.UID
		w.touch(o.UID, true)
	case *service:
		w.setService(o)
	case *endpoints:
		w.setEndpoints(o)
	}
}

// remove takes away the object of that resource and UID, if it is there.
func (w *world) remove(resource string, uid types.UID) {
	switch resource {
	case podResource:
		w.removePod(uid)
	case deploymentResource:
		if d := w.deployments[uid]; d != nil {
			w.touch(uid, true)
			delete(w.deployments, uid)
			w.unname(d.Ref)
		}
	case serviceResource:
		w.removeService(uid)
	case endpointsResource:
		w.removeEndpoints(uid)
	default:
		w.removeOwner(uid)
	}
}

// refs returns what objects there are of a resource.
func (w *world) refs(resource string) map[types.UID]history.Ref {
	all := map[types.UID]history.Ref{}
	switch resource {
	case podResource:
		collect(all, w.pods)
	case deploymentResource:
		collect(all, w.deployments)
	case serviceResource:
		collect(all, w.services)
	case endpointsResource:
		collect(all, w.endpoints)
	default:
		for uid, o := range w.owners {
			if o.kind.resource == resource {
				all[uid] = o.Ref
			}
		}
	}
	return all
}

// referrer is any object of a world: they all embed a Ref.
type referrer interface{ ref() *history.Ref }

func (p *pod) ref() *history.Ref { return &p.Ref }

func (o *owner) ref() *history.Ref { return &o.Ref }

func (d *deployment) ref() *history.Ref { return &d.Ref }

func (s *service) ref() *history.Ref { return &s.Ref }

func (e *endpoints) ref() *history.Ref { return &e.Ref }

func collect[T referrer](into map[types.UID]history.Ref, from map[types.UID]T) {
	for uid, o := range from {
		into[uid] = *o.ref()
	}
}

// inOrder returns the UIDs of the objects in a namespace, of all if it is "", in
// order of names.
func inOrder[T referrer](objects map[types.UID]T, namespace string) []types.UID {
	var uids []types.UID
	for uid, o := range objects {
		if namespace == "" || o.ref().Namespace == namespace {
			uids = append(uids, uid)
		}
	}
	slices.SortFunc(uids, func(a, b types.UID) int {
		return strings.Compare(objects[a].ref().String(), objects[b].ref().String())
	})
	return uids
}

func nameOf(r history.Ref) objectName { return objectName{r.Resource, r.Namespace, r.Name} }

// unname forgets the name of an object, unless it is another's by now.
func (w *world) unname(r history.Ref) {
	if w.names[nameOf(r)] == r.UID {
		delete(w.names, nameOf(r))
	}
}

// tally returns the count of an owner's pods, all zero for one that is not there.
func (w *world) tally(uid types.UID) tally {
	if t := w.tallies[uid]; t != nil {
		return *t
	}
	return tally{}
}

// versionOf is the version of an owner, a Deployment or Endpoints of that name, 0 if
// there is none.
func (w *world) versionOf(name objectName) history.Version {
	uid := w.names[name]
	switch {
	case w.owners[uid] != nil:
		return w.owners[uid].Version
	case w.deployments[uid] != nil:
		return w.deployments[uid].Version
	case w.endpoints[uid] != nil:
		return w.endpoints[uid].Version
	}
	return 0
}

func (w *world) podNamed(namespace, name string) *pod {
	return w.pods[w.names[objectName{podResource, namespace, name}]]
}

func (w *world) ownerNamed(resource, namespace, name string) *owner {
	return w.owners[w.names[objectName{resource, namespace, name}]]
}

// setPod adds a pod, or replaces the version there is.
func (w *world) setPod(p *pod) {
	old := w.pods[p.UID]
	if old != nil {
		w.count(old, -1)
		w.unindex(old)
	}
	w.pods[p.UID] = p
	w.names[nameOf(p.Ref)] = p.UID
	if p.orphan() {
		insert(w.orphans, p.Namespace, p.UID, p)
	} else {
		insert(w.controlled, p.controller.UID, p.UID, p)
	}
	w.count(p, 1)
	w.touchServices(old, p)
	switch {
	case old == nil && !p.orphan():
		t := w.touched[p.controller.UID]
		t.arrivals = append(t.arrivals, p.UID)
		w.touched[p.controller.UID] = t
	case old != nil && old.active && !p.active:
		w.departed = append(w.departed, p.UID)
	}
}

func (w *world) removePod(uid types.UID) {
	p := w.pods[uid]
	if p == nil {
		return
	}
	w.count(p, -1)
	w.touchServices(p, p)
	w.unindex(p)
	delete(w.pods, uid)
	delete(w.addresses, uid)
	if p.active {
		w.departed = append(w.departed, uid)
	}
	w.unname(p.Ref)
}

func (w *world) unindex(p *pod) {
	if p.orphan() {
		remove(w.orphans, p.Namespace, p.UID)
	} else {
		remove(w.controlled, p.controller.UID, p.UID)
	}
}

// setOwner adds an owner, or replaces the version there is.
func (w *world) setOwner(o *owner) {
	old := w.owners[o.UID]
	w.owners[o.UID] = o
	w.names[nameOf(o.Ref)] = o.UID
	w.touch(o.UID, true)
	w.indexSet(old, o)
	if old != nil && old.selector.String() == o.selector.String() && old.template.labels.String() == o.template.labels.String() {
		return
	}
	t := &tally{}
	for _, p := range w.controlled[o.UID] {
		t.add(o, p, 1)
	}
	for _, p := range w.orphans[o.Namespace] {
		t.add(o, p, 1)
	}
	w.tallies[o.UID] = t
}

// indexSet keeps whose each ReplicaSet is, and touches whom it is or was.
func (w *world) indexSet(old, now *owner) {
	if old != nil && old.controller.UID != "" {
		w.touch(old.controller.UID, false)
		remove(w.sets, old.controller.UID, old.UID)
	}
	if now.controller.UID != "" {
		w.touch(now.controller.UID, false)
		insert(w.sets, now.controller.UID, now.UID, now)
	}
}

func (w *world) removeOwner(uid types.UID) {
	o := w.owners[uid]
	if o == nil {
		return
	}
	w.touch(uid, true)
	delete(w.owners, uid)
	delete(w.tallies, uid)
	w.unname(o.Ref)
	if o.controller.UID != "" {
		w.touch(o.controller.UID, false)
		remove(w.sets, o.controller.UID, uid)
	}
}

// count adds or takes away a pod where it counts, and touches whom it concerns.
func (w *world) count(p *pod, sign int) {
	if !p.orphan() {
		w.touch(p.controller.UID, false)
		if o := w.owners[p.controller.UID]; o != nil {
			w.tallies[o.UID].add(o, p, sign)
		}
		return
	}
	for uid, o := range w.owners {
		if o.Namespace == p.Namespace && o.selector.Matches(p.labels) {
			w.touch(uid, false)
			w.tallies[uid].add(o, p, sign)
		}
	}
}

// settle begins anew with what is touched and departed.
func (w *world) settle() {
	clear(w.touched)
	clear(w.published)
	w.departed = w.departed[:0]
}

func (w *world) touch(uid types.UID, itself bool) {
	t := w.touched[uid]
	t.itself = t.itself || itself
	w.touched[uid] = t
}

func (t *tally) add(o *owner, p *pod, sign int) {
	if p.terminating && !p.orphan() {
		t.dying += sign
	}
	if !p.active && !p.terminating {
		return
	}
	matches := o.selector.Matches(p.labels)
	if !p.active {
		if matches && !p.ended && !p.orphan() {
			t.leaving += sign
		}
		return
	}
	if p.orphan() {
		if matches {
			t.orphans += sign
		}
		return
	}
	t.controlled += sign
	if !matches {
		return
	}
	t.replicas += sign
	if o.template.labels.Matches(p.labels) {
		t.labeled += sign
	}
	if p.ready {
		t.ready += sign
	}
}

func insert[K comparable, T any](index map[K]map[types.UID]T, key K, uid types.UID, object T) {
	if index[key] == nil {
		index[key] = map[types.UID]T{}
	}
	index[key][uid] = object
}

func remove[K comparable, T any](index map[K]map[types.UID]T, key K, uid types.UID) {
	delete(index[key], uid)
	if len(index[key]) == 0 {
		delete(index, key)
	}
}
