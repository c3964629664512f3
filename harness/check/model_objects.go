package check

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// objectName identifies an object by its resource, namespace and name, such as pods, default and
// web-1.
type objectName struct{ resource, namespace, name string }

// newObjectSet returns an objectSet without objects. Its field metadata is nil.
func newObjectSet() *objectSet {
	return &objectSet{
		pods:            map[types.UID]*objects.Pod{},
		owners:          map[types.UID]*objects.Owner{},
		deployments:     map[types.UID]*objects.Deployment{},
		services:        map[types.UID]*objects.Service{},
		endpoints:       map[types.UID]*objects.Endpoints{},
		uidByName:       map[objectName]types.UID{},
		controlled:      map[types.UID]map[types.UID]*objects.Pod{},
		orphans:         map[string]map[types.UID]*objects.Pod{},
		reassigned:      map[types.UID]bool{},
		podCounts:       map[types.UID]*podCounts{},
		replicaSets:     map[types.UID]map[types.UID]*objects.Owner{},
		changedObjects:  map[types.UID]change{},
		changedServices: map[objectName]change{},
		podAddresses:    map[types.UID]*objects.PodAddress{},
		deletedServices: map[objectName]bool{},
	}
}

// put adds a decoded object to the set, in place of the object's former version. It also updates
// the indexes and pod counts of the set.
func (state *objectSet) put(object any) {
	switch o := object.(type) {
	case *objects.Pod:
		state.setPod(o)
	case *objects.Owner:
		state.setOwner(o)
	case *objects.Deployment:
		state.deployments[o.UID] = o
		state.uidByName[nameOf(o.Ref)] = o.UID
		state.markChanged(o.UID, true)
	case *objects.Service:
		state.setService(o)
	case *objects.Endpoints:
		state.setEndpoints(o)
	}
}

// remove removes the object with the given UID from the set. It does nothing if the set does
// not contain the object.
func (state *objectSet) remove(resource string, uid types.UID) {
	switch resource {
	case objects.PodResource:
		state.removePod(uid)
	case objects.DeploymentResource:
		if d := state.deployments[uid]; d != nil {
			state.markChanged(uid, true)
			delete(state.deployments, uid)
			state.removeName(d.Ref)
		}
	case objects.ServiceResource:
		state.removeService(uid)
	case objects.EndpointsResource:
		state.removeEndpoints(uid)
	default:
		state.removeOwner(uid)
	}
}

// refs returns the references of all objects of a resource, with the objects' UIDs as keys. When
// a list replaces the cache, the references show which cached objects the list no longer
// contains.
func (state *objectSet) refs(resource string) map[types.UID]history.Ref {
	all := map[types.UID]history.Ref{}
	switch resource {
	case objects.PodResource:
		collectRefs(all, state.pods)
	case objects.DeploymentResource:
		collectRefs(all, state.deployments)
	case objects.ServiceResource:
		collectRefs(all, state.services)
	case objects.EndpointsResource:
		collectRefs(all, state.endpoints)
	default:
		for uid, o := range state.owners {
			if o.Kind.Resource == resource {
				all[uid] = o.Ref
			}
		}
	}
	return all
}

// objectWithRef is a decoded object that has a reference, such as a pod. Functions for objects of
// any type, such as sortedByName, read the namespace and name from this reference.
type objectWithRef interface{ ObjectRef() *history.Ref }

// collectRefs copies the reference of each object in the second map into the first map. The keys of
// both maps are the UIDs of the objects.
func collectRefs[T objectWithRef](into map[types.UID]history.Ref, from map[types.UID]T) {
	for uid, o := range from {
		into[uid] = *o.ObjectRef()
	}
}

// sortedByName returns the UIDs of the objects in a namespace, sorted by object name. For the
// namespace "", it returns the UIDs of all objects.
func sortedByName[T objectWithRef](objects map[types.UID]T, namespace string) []types.UID {
	var uids []types.UID
	for uid, o := range objects {
		if namespace == "" || o.ObjectRef().Namespace == namespace {
			uids = append(uids, uid)
		}
	}
	slices.SortFunc(uids, func(a, b types.UID) int {
		return strings.Compare(objects[a].ObjectRef().String(), objects[b].ObjectRef().String())
	})
	return uids
}

// nameOf returns the part of a reference that names the object: resource, namespace and name.
func nameOf(r history.Ref) objectName { return objectName{r.Resource, r.Namespace, r.Name} }

// removeName removes a deleted object from the map uidByName. It does nothing if a new object
// with the same name has taken its place.
func (state *objectSet) removeName(r history.Ref) {
	if state.uidByName[nameOf(r)] == r.UID {
		delete(state.uidByName, nameOf(r))
	}
}

// podCountsOf returns the pod counts of the ReplicaSet or ReplicationController with the given
// UID. All counts are 0 if the set does not contain that owner.
func (state *objectSet) podCountsOf(uid types.UID) podCounts {
	if counts := state.podCounts[uid]; counts != nil {
		return *counts
	}
	return podCounts{}
}

// activePodsOf returns how many active pods an owner controls. The set need not contain the owner.
func (state *objectSet) activePodsOf(uid types.UID) (active int) {
	for _, pod := range state.controlled[uid] {
		if pod.Active {
			active++
		}
	}
	return active
}

// versionOf returns the resourceVersion of the object with the given name, or 0 if there is no
// such object. It finds objects of any kind only if a controller without a contract is under
// test. Otherwise it finds only ReplicaSets, ReplicationControllers, Deployments and Endpoints.
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
	if o := state.metadata.find(name, ""); o != nil {
		return o.Version
	}
	return 0
}

// podNamed returns the pod with the given name, or nil if the set does not contain it.
func (state *objectSet) podNamed(namespace, name string) *objects.Pod {
	return state.pods[state.uidByName[objectName{objects.PodResource, namespace, name}]]
}

// ownerNamed returns the ReplicaSet or ReplicationController with the given name, or nil if
// the set does not contain it.
func (state *objectSet) ownerNamed(resource, namespace, name string) *objects.Owner {
	return state.owners[state.uidByName[objectName{resource, namespace, name}]]
}

// setPod adds a pod to the set, or replaces the pod's former version. It also updates the pod
// counts of the pod's owner.
func (state *objectSet) setPod(p *objects.Pod) {
	old := state.pods[p.UID]
	if old != nil {
		state.countPod(old, -1)
		state.removeFromIndex(old)
	}
	state.pods[p.UID] = p
	state.uidByName[nameOf(p.Ref)] = p.UID
	if p.Orphan() {
		insert(state.orphans, p.Namespace, p.UID, p)
	} else {
		insert(state.controlled, p.Controller.UID, p.UID, p)
	}
	state.countPod(p, 1)
	state.markServicesOf(old, p)
	switch {
	case old == nil && !p.Orphan():
		change := state.changedObjects[p.Controller.UID]
		change.newPods = append(change.newPods, p.UID)
		state.changedObjects[p.Controller.UID] = change
	case old != nil && old.Active && !p.Active:
		state.noLongerActive = append(state.noLongerActive, p.UID)
	}
}

// removePod removes a pod from the set, and subtracts the pod from the pod counts of its owner.
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
	if p.Active {
		state.noLongerActive = append(state.noLongerActive, uid)
	}
	state.removeName(p.Ref)
}

// removeFromIndex removes a pod from the map orphans if the pod has no controllerRef, and
// otherwise from the map controlled.
func (state *objectSet) removeFromIndex(p *objects.Pod) {
	if p.Orphan() {
		remove(state.orphans, p.Namespace, p.UID)
	} else {
		remove(state.controlled, p.Controller.UID, p.UID)
	}
}

// setOwner adds a ReplicaSet or ReplicationController to the set, or replaces its former
// version. If the selector or the labels of the pod template changed, setOwner counts the
// owner's pods again.
func (state *objectSet) setOwner(o *objects.Owner) {
	old := state.owners[o.UID]
	state.owners[o.UID] = o
	if old != nil && old.Controller.UID != o.Controller.UID {
		state.reassigned[o.UID] = true
	}
	state.uidByName[nameOf(o.Ref)] = o.UID
	state.markChanged(o.UID, true)
	state.indexReplicaSet(old, o)
	if old != nil && old.Selector.String() == o.Selector.String() && old.Template.Labels.String() == o.Template.Labels.String() {
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

// indexReplicaSet updates the map replicaSets after a ReplicaSet has changed, because the
// ReplicaSet may have another controllerRef now. It also marks the old and the new controller as
// changed.
func (state *objectSet) indexReplicaSet(old, now *objects.Owner) {
	if old != nil && old.Controller.UID != "" {
		state.markChanged(old.Controller.UID, false)
		remove(state.replicaSets, old.Controller.UID, old.UID)
	}
	if now.Controller.UID != "" {
		state.markChanged(now.Controller.UID, false)
		insert(state.replicaSets, now.Controller.UID, now.UID, now)
	}
}

// removeOwner removes a ReplicaSet or ReplicationController from the set. The owner's pods stay
// in the set.
func (state *objectSet) removeOwner(uid types.UID) {
	o := state.owners[uid]
	if o == nil {
		return
	}
	state.markChanged(uid, true)
	delete(state.owners, uid)
	delete(state.reassigned, uid)
	delete(state.podCounts, uid)
	state.removeName(o.Ref)
	if o.Controller.UID != "" {
		state.markChanged(o.Controller.UID, false)
		remove(state.replicaSets, o.Controller.UID, uid)
	}
}

// countPod adds a pod to the pod counts of the pod's owner, and marks the owner as changed. The
// parameter sign is 1 to add the pod, or -1 to subtract it. An orphan counts for each owner whose
// selector matches the orphan.
func (state *objectSet) countPod(p *objects.Pod, sign int) {
	if !p.Orphan() {
		state.markChanged(p.Controller.UID, false)
		if o := state.owners[p.Controller.UID]; o != nil {
			state.podCounts[o.UID].add(o, p, sign)
		}
		return
	}
	for uid, o := range state.owners {
		if o.Namespace == p.Namespace && o.Selector.Matches(p.Labels) {
			state.markChanged(uid, false)
			state.podCounts[uid].add(o, p, sign)
		}
	}
}

// clearChanges empties changedObjects, changedServices and noLongerActive. The model calls it
// after it has processed the changes of one record.
func (state *objectSet) clearChanges() {
	clear(state.changedObjects)
	clear(state.changedServices)
	state.noLongerActive = state.noLongerActive[:0]
	state.metadata.clearChanges()
}

// anyChanged reports whether an object has changed since the last call of the function
// clearChanges. It ignores objects whose changes cannot enqueue a key of a controller under
// test.
func (state *objectSet) anyChanged() bool {
	return len(state.changedObjects)+len(state.changedServices) > 0 || state.metadata.anyChanged()
}

// markChanged adds an object to changedObjects. The parameter objectChanged is true if the
// object itself changed. It is false if only the object's pods or ReplicaSets changed.
func (state *objectSet) markChanged(uid types.UID, objectChanged bool) {
	change := state.changedObjects[uid]
	change.objectChanged = change.objectChanged || objectChanged
	state.changedObjects[uid] = change
}

// add adds a pod to the pod counts of its owner (the parameter o). The parameter sign is 1 to add
// the pod, or -1 to subtract it.
func (counts *podCounts) add(o *objects.Owner, p *objects.Pod, sign int) {
	if p.Terminating && !p.Orphan() {
		counts.terminating += sign
	}
	if !p.Active && !p.Terminating {
		return
	}
	matches := o.Selector.Matches(p.Labels)
	if !p.Active {
		if matches && !p.Ended && !p.Orphan() {
			counts.terminatingReplicas += sign
		}
		return
	}
	if p.Orphan() {
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
	if o.Template.Labels.Matches(p.Labels) {
		counts.fullyLabeled += sign
	}
	if p.Ready {
		counts.ready += sign
	}
}

// insert adds an object to an index with two levels, such as objectSet.controlled. The key of the
// outer map is, for example, the UID of the pod's owner. The key of each inner map is the UID of
// the object itself. If there is no inner map for the key yet, insert creates one.
func insert[K comparable, T any](index map[K]map[types.UID]T, key K, uid types.UID, object T) {
	if index[key] == nil {
		index[key] = map[types.UID]T{}
	}
	index[key][uid] = object
}

// remove removes an object from an index with two levels, such as objectSet.controlled. The
// parameter key is the key of the outer map. The parameter uid is the key of the inner map. If
// the inner map is then empty, remove deletes it too.
func remove[K comparable, T any](index map[K]map[types.UID]T, key K, uid types.UID) {
	delete(index[key], uid)
	if len(index[key]) == 0 {
		delete(index, key)
	}
}
