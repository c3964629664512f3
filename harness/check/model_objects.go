package check

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// objectName identifies an object by its resource, namespace and name.
type objectName struct{ resource, namespace, name string }

func newObjectSet() *objectSet {
	return &objectSet{
		pods:            map[types.UID]*pod{},
		owners:          map[types.UID]*owner{},
		deployments:     map[types.UID]*deployment{},
		services:        map[types.UID]*service{},
		endpoints:       map[types.UID]*endpoints{},
		uidByName:       map[objectName]types.UID{},
		controlled:      map[types.UID]map[types.UID]*pod{},
		orphans:         map[string]map[types.UID]*pod{},
		podCounts:       map[types.UID]*podCounts{},
		replicaSets:     map[types.UID]map[types.UID]*owner{},
		changedObjects:  map[types.UID]change{},
		changedServices: map[objectName]change{},
		podAddresses:    map[types.UID]*podAddress{},
		deletedServices: map[objectName]bool{},
	}
}

// put adds a decoded object, or replaces its former version.
func (objects *objectSet) put(object any) {
	switch o := object.(type) {
	case *pod:
		objects.setPod(o)
	case *owner:
		objects.setOwner(o)
	case *deployment:
		objects.deployments[o.UID] = o
		objects.uidByName[nameOf(o.Ref)] = o.UID
		objects.markChanged(o.UID, true)
	case *service:
		objects.setService(o)
	case *endpoints:
		objects.setEndpoints(o)
	}
}

// remove removes the object with the given resource and UID, if the set contains it.
func (objects *objectSet) remove(resource string, uid types.UID) {
	switch resource {
	case podResource:
		objects.removePod(uid)
	case deploymentResource:
		if d := objects.deployments[uid]; d != nil {
			objects.markChanged(uid, true)
			delete(objects.deployments, uid)
			objects.removeName(d.Ref)
		}
	case serviceResource:
		objects.removeService(uid)
	case endpointsResource:
		objects.removeEndpoints(uid)
	default:
		objects.removeOwner(uid)
	}
}

// refs returns the objects of a resource, by UID.
func (objects *objectSet) refs(resource string) map[types.UID]history.Ref {
	all := map[types.UID]history.Ref{}
	switch resource {
	case podResource:
		collectRefs(all, objects.pods)
	case deploymentResource:
		collectRefs(all, objects.deployments)
	case serviceResource:
		collectRefs(all, objects.services)
	case endpointsResource:
		collectRefs(all, objects.endpoints)
	default:
		for uid, o := range objects.owners {
			if o.kind.resource == resource {
				all[uid] = o.Ref
			}
		}
	}
	return all
}

// objectWithRef is a decoded object that has a reference. All objects in an objectSet have
// one.
type objectWithRef interface{ ref() *history.Ref }

func (p *pod) ref() *history.Ref { return &p.Ref }

func (o *owner) ref() *history.Ref { return &o.Ref }

func (d *deployment) ref() *history.Ref { return &d.Ref }

func (s *service) ref() *history.Ref { return &s.Ref }

func (e *endpoints) ref() *history.Ref { return &e.Ref }

func collectRefs[T objectWithRef](into map[types.UID]history.Ref, from map[types.UID]T) {
	for uid, o := range from {
		into[uid] = *o.ref()
	}
}

// sortedByName returns the UIDs of the objects in a namespace, sorted by name. The
// namespace "" selects the objects of all namespaces.
func sortedByName[T objectWithRef](objects map[types.UID]T, namespace string) []types.UID {
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

// removeName removes the name of an object, unless another object already has it.
func (objects *objectSet) removeName(r history.Ref) {
	if objects.uidByName[nameOf(r)] == r.UID {
		delete(objects.uidByName, nameOf(r))
	}
}

// podCountsOf returns the counts of an owner's pods. All counts are zero if the set has no
// counts for this owner.
func (objects *objectSet) podCountsOf(uid types.UID) podCounts {
	if counts := objects.podCounts[uid]; counts != nil {
		return *counts
	}
	return podCounts{}
}

// versionOf returns the resourceVersion of an owner, a Deployment or Endpoints. It returns
// 0 if no such object has the name.
func (objects *objectSet) versionOf(name objectName) history.Version {
	uid := objects.uidByName[name]
	switch {
	case objects.owners[uid] != nil:
		return objects.owners[uid].Version
	case objects.deployments[uid] != nil:
		return objects.deployments[uid].Version
	case objects.endpoints[uid] != nil:
		return objects.endpoints[uid].Version
	}
	return 0
}

func (objects *objectSet) podNamed(namespace, name string) *pod {
	return objects.pods[objects.uidByName[objectName{podResource, namespace, name}]]
}

func (objects *objectSet) ownerNamed(resource, namespace, name string) *owner {
	return objects.owners[objects.uidByName[objectName{resource, namespace, name}]]
}

// setPod adds a pod, or replaces its former version.
func (objects *objectSet) setPod(p *pod) {
	old := objects.pods[p.UID]
	if old != nil {
		objects.countPod(old, -1)
		objects.removeFromIndex(old)
	}
	objects.pods[p.UID] = p
	objects.uidByName[nameOf(p.Ref)] = p.UID
	if p.orphan() {
		insert(objects.orphans, p.Namespace, p.UID, p)
	} else {
		insert(objects.controlled, p.controller.UID, p.UID, p)
	}
	objects.countPod(p, 1)
	objects.markServicesOf(old, p)
	switch {
	case old == nil && !p.orphan():
		change := objects.changedObjects[p.controller.UID]
		change.newPods = append(change.newPods, p.UID)
		objects.changedObjects[p.controller.UID] = change
	case old != nil && old.active && !p.active:
		objects.noLongerActive = append(objects.noLongerActive, p.UID)
	}
}

func (objects *objectSet) removePod(uid types.UID) {
	p := objects.pods[uid]
	if p == nil {
		return
	}
	objects.countPod(p, -1)
	objects.markServicesOf(p, p)
	objects.removeFromIndex(p)
	delete(objects.pods, uid)
	delete(objects.podAddresses, uid)
	if p.active {
		objects.noLongerActive = append(objects.noLongerActive, uid)
	}
	objects.removeName(p.Ref)
}

func (objects *objectSet) removeFromIndex(p *pod) {
	if p.orphan() {
		remove(objects.orphans, p.Namespace, p.UID)
	} else {
		remove(objects.controlled, p.controller.UID, p.UID)
	}
}

// setOwner adds an owner, or replaces its former version.
func (objects *objectSet) setOwner(o *owner) {
	old := objects.owners[o.UID]
	objects.owners[o.UID] = o
	objects.uidByName[nameOf(o.Ref)] = o.UID
	objects.markChanged(o.UID, true)
	objects.indexReplicaSet(old, o)
	if old != nil && old.selector.String() == o.selector.String() && old.template.labels.String() == o.template.labels.String() {
		return
	}
	counts := &podCounts{}
	for _, p := range objects.controlled[o.UID] {
		counts.add(o, p, 1)
	}
	for _, p := range objects.orphans[o.Namespace] {
		counts.add(o, p, 1)
	}
	objects.podCounts[o.UID] = counts
}

// indexReplicaSet updates the index by controller, and marks the old and the new
// controller as changed.
func (objects *objectSet) indexReplicaSet(old, now *owner) {
	if old != nil && old.controller.UID != "" {
		objects.markChanged(old.controller.UID, false)
		remove(objects.replicaSets, old.controller.UID, old.UID)
	}
	if now.controller.UID != "" {
		objects.markChanged(now.controller.UID, false)
		insert(objects.replicaSets, now.controller.UID, now.UID, now)
	}
}

func (objects *objectSet) removeOwner(uid types.UID) {
	o := objects.owners[uid]
	if o == nil {
		return
	}
	objects.markChanged(uid, true)
	delete(objects.owners, uid)
	delete(objects.podCounts, uid)
	objects.removeName(o.Ref)
	if o.controller.UID != "" {
		objects.markChanged(o.controller.UID, false)
		remove(objects.replicaSets, o.controller.UID, uid)
	}
}

// countPod adds a pod to the counts, or subtracts it, and marks its owners as changed.
func (objects *objectSet) countPod(p *pod, sign int) {
	if !p.orphan() {
		objects.markChanged(p.controller.UID, false)
		if o := objects.owners[p.controller.UID]; o != nil {
			objects.podCounts[o.UID].add(o, p, sign)
		}
		return
	}
	for uid, o := range objects.owners {
		if o.Namespace == p.Namespace && o.selector.Matches(p.labels) {
			objects.markChanged(uid, false)
			objects.podCounts[uid].add(o, p, sign)
		}
	}
}

// clearChanges empties changedObjects, changedServices and noLongerActive.
func (objects *objectSet) clearChanges() {
	clear(objects.changedObjects)
	clear(objects.changedServices)
	objects.noLongerActive = objects.noLongerActive[:0]
}

func (objects *objectSet) markChanged(uid types.UID, objectChanged bool) {
	change := objects.changedObjects[uid]
	change.objectChanged = change.objectChanged || objectChanged
	objects.changedObjects[uid] = change
}

func (counts *podCounts) add(o *owner, p *pod, sign int) {
	if p.terminating && !p.orphan() {
		counts.terminating += sign
	}
	if !p.active && !p.terminating {
		return
	}
	matches := o.selector.Matches(p.labels)
	if !p.active {
		if matches && !p.ended && !p.orphan() {
			counts.terminatingReplicas += sign
		}
		return
	}
	if p.orphan() {
		if matches {
			counts.orphans += sign
		}
		return
	}
	counts.controlled += sign
	if !matches {
		return
	}
	counts.replicas += sign
	if o.template.labels.Matches(p.labels) {
		counts.fullyLabeled += sign
	}
	if p.ready {
		counts.ready += sign
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
