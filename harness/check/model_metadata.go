package check

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// newMetadataSet returns an empty set, or nil if no generic controller is under test. A generic
// controller reconciles another kind than ReplicaSet, ReplicationController, Deployment and
// Service, such as Job. All methods of metadataSet accept nil, and treat nil as an empty set.
func newMetadataSet(tested *testedControllers) *metadataSet {
	if len(tested.generic) == 0 {
		return nil
	}
	return &metadataSet{
		tested:         tested,
		byUID:          map[types.UID]*objectMetadata{},
		byResource:     map[string]map[types.UID]*objectMetadata{},
		uidByName:      map[objectName]types.UID{},
		childResources: map[string]bool{},
		terminating:    map[types.UID]*objectMetadata{},
	}
}

// put adds the metadata of an object to the set. It replaces the metadata of the object's former
// version.
func (set *metadataSet) put(o *history.Object) {
	if set == nil {
		return
	}
	set.changed = true
	now := &objectMetadata{Ref: o.Ref, owners: o.Owners, generation: o.Generation, terminating: o.Terminating()}
	if ref := o.ControllerRef(); ref != nil {
		now.controller = *ref
	}
	if old := set.byUID[o.UID]; old != nil {
		now.ownerChanged = old.ownerChanged || old.controller.UID != now.controller.UID
	}
	if set.tested.genericKind(now.controller.Kind) {
		set.childResources[o.Resource] = true
	}
	if set.decoder != nil {
		set.keepObject(now, o)
	}
	set.byUID[o.UID] = now
	insert(set.byResource, o.Resource, o.UID, now)
	set.uidByName[nameOf(o.Ref)] = o.UID
}

// keepObject stores a whole object (the parameter o) in its metadata, if a generic controller
// reconciles the object. A generic controller is one without a contract. Without the whole
// object, the set could not tell whether the object has converged. keepObject also adds a
// terminating object of any kind to the map terminating.
func (set *metadataSet) keepObject(now *objectMetadata, o *history.Object) {
	if set.tested.genericKindOf(o.Resource) != "" {
		now.object = o
	}
	if now.terminating {
		set.terminating[o.UID] = now
	}
}

// remove removes the metadata of a deleted object. It does nothing if the set does not contain
// the object.
func (set *metadataSet) remove(uid types.UID) {
	if set == nil || set.byUID[uid] == nil {
		return
	}
	set.changed = true
	o := set.byUID[uid]
	delete(set.byUID, uid)
	remove(set.byResource, o.Resource, uid)
	delete(set.terminating, uid)
	if set.uidByName[nameOf(o.Ref)] == uid {
		delete(set.uidByName, nameOf(o.Ref))
	}
}

// get returns the metadata of the object with the given UID, or nil if there is no such object.
func (set *metadataSet) get(uid types.UID) *objectMetadata {
	if set == nil {
		return nil
	}
	return set.byUID[uid]
}

// find returns the metadata of the object with the given UID or, if uid is empty, with the given
// name. It returns nil if the set contains no such object.
func (set *metadataSet) find(name objectName, uid types.UID) *objectMetadata {
	if set == nil {
		return nil
	}
	if uid == "" {
		uid = set.uidByName[name]
	}
	return set.byUID[uid]
}

// anyChanged reports whether an object was added, changed or removed since the last call of the
// function clearChanges.
func (set *metadataSet) anyChanged() bool { return set != nil && set.changed }

// clearChanges makes anyChanged return false until another object is added, changed or removed.
func (set *metadataSet) clearChanges() {
	if set != nil {
		set.changed = false
	}
}

// collectRefs adds the references of all objects of a resource to the map into. The keys of this
// map are the objects' UIDs. When a list replaces the cache, the references show which cached
// objects the list no longer contains.
func (set *metadataSet) collectRefs(into map[types.UID]history.Ref, resource string) {
	if set != nil {
		collectRefs(into, set.byResource[resource])
	}
}

// ObjectRef returns the reference of the object: resource, namespace, name, UID and
// resourceVersion.
func (o *objectMetadata) ObjectRef() *history.Ref { return &o.Ref }

// String formats the object as kind namespace/name, such as "Job default/backup". If package
// kube does not know the resource, the text begins with the resource instead of the kind.
func (o *objectMetadata) String() string {
	row, ok := kube.ByResource(o.Resource)
	if !ok {
		return o.Ref.String()
	}
	return row.Name + strings.TrimPrefix(o.Ref.String(), o.Resource)
}

// foreign reports whether it is certain that no controller under test is responsible for the
// object.
//
// It follows the controllerRefs from the object to its controller, to the controller of that
// controller, and so on. The result is true only under these conditions:
//
//   - The last controllerRef names an object that is not in the set, and no controller under test
//     watches the kind of this object. Otherwise the watch event of the object may still arrive.
//   - No controllerRef on the way has changed.
//   - No controller under test reconciles the kind of any owner on the way.
func (set *metadataSet) foreign(o *objectMetadata) bool {
	for range 16 { // the API server does not prevent cycles
		if o.ownerChanged || o.controller.UID == "" {
			return false
		}
		if slices.ContainsFunc(o.owners, func(owner history.Owner) bool { return set.tested.reconciles(owner.Kind) }) {
			return false
		}
		next := set.byUID[o.controller.UID]
		if next == nil {
			return !set.tested.watches(o.controller.Kind)
		}
		o = next
	}
	return false
}

// pendingGeneric returns how the objects of generic controllers, such as Jobs, differ from the
// converged state. It checks the objects in one namespace, sorted by name. A generic controller
// reconciles another kind than ReplicaSet, ReplicationController, Deployment and Service.
//
// pendingGeneric reads only fields that the Kubernetes API conventions define:
// status.observedGeneration and counts of replicas. A terminating object also counts as a
// difference, if a generic controller reconciles the object or the object's controller.
func (set *metadataSet) pendingGeneric(namespace string) (all []pending) {
	if set == nil {
		return nil
	}
	reconciled := map[types.UID]*objectMetadata{}
	for resource, objects := range set.byResource {
		for uid, o := range objects {
			if set.tested.genericKindOf(resource) != "" && !o.terminating {
				reconciled[uid] = o
			}
		}
	}
	for _, uid := range sortedByName(reconciled, namespace) {
		all = append(all, set.pending(reconciled[uid])...)
	}
	for _, uid := range sortedByName(set.terminating, namespace) {
		o := set.terminating[uid]
		if set.tested.genericKindOf(o.Resource) != "" || set.tested.genericKind(o.controller.Kind) {
			all = append(all, pending{text: o.String() + ": terminating, expected the object to be deleted", awaited: true})
		}
	}
	return all
}

// pending returns how one object differs from the converged state. It compares only
// observedGeneration and the counts of replicas. If the object cannot be decoded, it returns no
// difference.
func (set *metadataSet) pending(o *objectMetadata) []pending {
	g, err := set.decoder.Generic(o.object)
	if err != nil {
		return nil
	}
	list := pendings{subject: o.String()}
	if g.ObservedGeneration != nil {
		list.expect(g.Observed(), "status.observedGeneration is %d, expected %d", *g.ObservedGeneration, g.Generation)
	}
	if g.Replicas == nil || g.Status.Replicas == nil {
		return list.all
	}
	list.expect(!g.Scaling(), "status.replicas is %d, expected %d", *g.Status.Replicas, *g.Replicas)
	ready := g.Status.ReadyReplicas
	if row, ok := kube.ByResource(o.Resource); ok && row.Builtin() && ready == nil {
		ready = new(int) // builtin kinds omit the field if it is 0
	}
	for _, field := range []struct {
		name  string
		found *int
	}{{"readyReplicas", ready}, {"availableReplicas", g.Status.AvailableReplicas}} {
		if field.found != nil {
			list.add(*field.found == *g.Replicas, true, "status.%s is %d, expected %d", field.name, *field.found, *g.Replicas)
		}
	}
	return list.all
}

// describeController formats the controllerRef of an object for the evidence of a violation, such
// as "controller Job backup".
func (o *objectMetadata) describeController() string {
	if o.controller.UID == "" {
		return "no controller"
	}
	return fmt.Sprintf("controller %s %s", o.controller.Kind, o.controller.Name)
}
