package check

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// objectName identifies an object by name.
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
func (state *objectSet) put(object any) {
	switch o := object.(type) {
	case *pod:
		state.setPod(o)
	case *owner:
		state.setOwner(o)
	case *deployment:
		state.deployments[o.UID] = o
		state.uidByName[nameOf(o.Ref)] = o.UID
		state.markChanged(o.UID, true)
	case *service:
		state.setService(o)
	case *endpoints:
		state.setEndpoints(o)
	}
}

// remove removes the object with that resource and UID, if the set contains it.
func (state *objectSet) remove(resource string, uid types.UID) {
	switch resource {
	case podResource:
		state.removePod(uid)
	case deploymentResource:
		if d := state.deployments[uid]; d != nil {
			state.markChanged(uid, true)
			delete(state.deployments, uid)
			state.removeName(d.Ref)
		}
	case serviceResource:
		state.removeService(uid)
	case endpointsResource:
		state.removeEndpoints(uid)
	default:
		state.removeOwner(uid)
	}
}

// refs returns the objects of a resource, by UID.
func (state *objectSet) refs(resource string) map[types.UID]history.Ref {
	all := map[types.UID]history.Ref{}
	switch resource {
	case podResource:
		collectRefs(all, state.pods)
	case deploymentResource:
		collectRefs(all, state.deployments)
	case serviceResource:
		collectRefs(all, state.services)
	case endpointsResource:
		collectRefs(all, state.endpoints)
	default:
		for uid, o := range state.owners {
			if o.kind.resource == resource {
				all[uid] = o.Ref
			}
		}
	}
	return all
}

// objectWithRef is an object that an objectSet may contain.
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

// sortedByName returns the UIDs of the objects in a namespace, sorted by name. If
// namespace is "", it returns those of all namespaces.
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
func (state *objectSet) removeName(r history.Ref) {
	if state.uidByName[nameOf(r)] == r.UID {
		delete(state.uidByName, nameOf(r))
	}
}

// podCountsOf returns the counts of an owner's pods; all are zero if there is no such
// owner.
func (state *objectSet) podCountsOf(uid types.UID) podCounts {
	if counts := state.podCounts[uid]; counts != nil {
		return *counts
	}
	return podCounts{}
}

// versionOf returns the resourceVersion of an owner, a Deployment or Endpoints, 0 if
// there is none with that name.
func (state *objectSet) versionOf(name objectName) history.Version {
	uid := state.uidByName[name]
	switch {
	case state.owners[uid] != nil:
		return state.owners[uid].Version
	case state.deployments[uid] != nil:
		return state.deployments[uid].Version
	case state.endpoints[uid] != nil:
		return state.endpoints[uid].Version
	}
	return 0
}

func (state *objectSet) podNamed(namespace, name string) *pod {
	return state.pods[state.uidByName[objectName{podResource, namespace, name}]]
}

func (state *objectSet) ownerNamed(resource, namespace, name string) *owner {
	return state.owners[state.uidByName[objectName{resource, namespace, name}]]
}

// setPod adds a pod, or replaces its former version.
func (state *objectSet) setPod(p *pod) {
	old := state.pods[p.UID]
	if old != nil {
		state.countPod(old, -1)
		state.removeFromIndex(old)
	}
	state.pods[p.UID] = p
	state.uidByName[nameOf(p.Ref)] = p.UID
	if p.orphan() {
		insert(state.orphans, p.Namespace, p.UID, p)
	} else {
		insert(state.controlled, p.controller.UID, p.UID, p)
	}
	state.countPod(p, 1)
	state.markServicesOf(old, p)
	switch {
	case old == nil && !p.orphan():
		change := state.changedObjects[p.controller.UID]
		change.newPods = append(change.newPods, p.UID)
		state.changedObjects[p.controller.UID] = change
	case old != nil && old.active && !p.active:
		state.noLongerActive = append(state.noLongerActive, p.UID)
	}
}

func (state *objectSet) removePod(uid types.UID) {
	p := state.pods[uid]
	if p == nil {
		return
	}
	state.countPod(p, -1)
	state.markServicesOf(p, p)
	state.removeFromIndex(p)
	delete(state.pods, uid)
	delete(state.podAddresses, uid)
	if p.active {
		state.noLongerActive = append(state.noLongerActive, uid)
	}
	state.removeName(p.Ref)
}

func (state *objectSet) removeFromIndex(p *pod) {
	if p.orphan() {
		remove(state.orphans, p.Namespace, p.UID)
	} else {
		remove(state.controlled, p.controller.UID, p.UID)
	}
}

// setOwner adds an owner, or replaces its former version.
func (state *objectSet) setOwner(o *owner) {
	old := state.owners[o.UID]
	state.owners[o.UID] = o
	state.uidByName[nameOf(o.Ref)] = o.UID
	state.markChanged(o.UID, true)
	state.indexReplicaSet(old, o)
	if old != nil && old.selector.String() == o.selector.String() && old.template.labels.String() == o.template.labels.String() {
		return
	}
	counts := &podCounts{}
	for _, p := range state.controlled[o.UID] {
		counts.add(o, p, 1)
	}
	for _, p := range state.orphans[o.Namespace] {
		counts.add(o, p, 1)
	}
	state.podCounts[o.UID] = counts
}

// indexReplicaSet updates the index by controller, and marks the old and the new
// controller as changed.
func (state *objectSet) indexReplicaSet(old, now *owner) {
	if old != nil && old.controller.UID != "" {
		state.markChanged(old.controller.UID, false)
		remove(state.replicaSets, old.controller.UID, old.UID)
	}
	if now.controller.UID != "" {
		state.markChanged(now.controller.UID, false)
		insert(state.replicaSets, now.controller.UID, now.UID, now)
	}
}

func (state *objectSet) removeOwner(uid types.UID) {
	o := state.owners[uid]
	if o == nil {
		return
	}
	state.markChanged(uid, true)
	delete(state.owners, uid)
	delete(state.podCounts, uid)
	state.removeName(o.Ref)
	if o.controller.UID != "" {
		state.markChanged(o.controller.UID, false)
		remove(state.replicaSets, o.controller.UID, uid)
	}
}

// countPod adds a pod to the counts, or subtracts it, and marks its owners as changed.
func (state *objectSet) countPod(p *pod, sign int) {
	if !p.orphan() {
		state.markChanged(p.controller.UID, false)
		if o := state.owners[p.controller.UID]; o != nil {
			state.podCounts[o.UID].add(o, p, sign)
		}
		return
	}
	for uid, o := range state.owners {
		if o.Namespace == p.Namespace && o.selector.Matches(p.labels) {
			state.markChanged(uid, false)
			state.podCounts[uid].add(o, p, sign)
		}
	}
}

// clearChanges empties changedObjects, changedServices and noLongerActive.
func (state *objectSet) clearChanges() {
	clear(state.changedObjects)
	clear(state.changedServices)
	state.noLongerActive = state.noLongerActive[:0]
}

func (state *objectSet) markChanged(uid types.UID, objectChanged bool) {
	change := state.changedObjects[uid]
	change.objectChanged = change.objectChanged || objectChanged
	state.changedObjects[uid] = change
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
