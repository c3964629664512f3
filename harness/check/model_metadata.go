package check

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// newMetadataSet returns an empty set, or nil if no generic controller is under test. All
// methods accept nil as an empty set.
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

// put adds a version of an object, or replaces its former version.
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
	if set.withBodies {
		set.keepBody(now, o)
	}
	set.byUID[o.UID] = now
	insert(set.byResource, o.Resource, o.UID, now)
	set.uidByName[nameOf(o.Ref)] = o.UID
}

func (set *metadataSet) keepBody(now *objectMetadata, o *history.Object) {
	if set.tested.genericKindOf(o.Resource) != "" {
		now.body = o.Body
	}
	if now.terminating {
		set.terminating[o.UID] = now
	}
}

// remove removes an object, if the set contains it.
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

// get returns the object with a UID, or nil.
func (set *metadataSet) get(uid types.UID) *objectMetadata {
	if set == nil {
		return nil
	}
	return set.byUID[uid]
}

// find returns the object with a name, or nil. If the UID is not empty, it must match too.
func (set *metadataSet) find(name objectName, uid types.UID) *objectMetadata {
	if set == nil {
		return nil
	}
	if uid == "" {
		uid = set.uidByName[name]
	}
	return set.byUID[uid]
}

// anyChanged reports whether an object has changed since the last call of clearChanges.
func (set *metadataSet) anyChanged() bool { return set != nil && set.changed }

func (set *metadataSet) clearChanges() {
	if set != nil {
		set.changed = false
	}
}

// collectRefs adds the objects of a resource to a map.
func (set *metadataSet) collectRefs(into map[types.UID]history.Ref, resource string) {
	if set != nil {
		collectRefs(into, set.byResource[resource])
	}
}

// ObjectRef returns the reference to this version of the object.
func (o *objectMetadata) ObjectRef() *history.Ref { return &o.Ref }

// String returns the object as evidence names it: kind namespace/name.
func (o *objectMetadata) String() string {
	row, ok := kube.ByResource(o.Resource)
	if !ok {
		return o.Ref.String()
	}
	return row.Name + strings.TrimPrefix(o.Ref.String(), o.Resource)
}

// foreign reports whether the controllers under test have certainly nothing to do with an
// object. The chain of its controllers then ends with a kind that no controller under test
// reconciles or watches.
//
// The set may lack a controller in the chain that a controller under test watches. Such an
// object is not foreign, because it may belong to the controllers under test.
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

// pendingGeneric returns the differences of all objects in a namespace that generic
// controllers under test reconcile, sorted by name. It applies the conventions of the
// Kubernetes API for status.observedGeneration and for counts of replicas.
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
		all = append(all, reconciled[uid].pending()...)
	}
	for _, uid := range sortedByName(set.terminating, namespace) {
		o := set.terminating[uid]
		if set.tested.genericKindOf(o.Resource) != "" || set.tested.genericKind(o.controller.Kind) {
			all = append(all, pending{text: o.String() + ": terminating", awaited: true})
		}
	}
	return all
}

// pending returns the differences of one object.
func (o *objectMetadata) pending() []pending {
	if o.progress == nil {
		o.progress = &progress{}
		if err := objects.Unmarshal(o.body, o.progress); err != nil {
			o.progress = &progress{} // the fields have another meaning in this kind
		}
	}
	spec, status := &o.progress.Spec, &o.progress.Status
	list := pendings{subject: o.String()}
	if status.ObservedGeneration != nil {
		list.expect(*status.ObservedGeneration >= o.generation, "status.observedGeneration is %d, expected %d", *status.ObservedGeneration, o.generation)
	}
	if spec.Replicas == nil || status.Replicas == nil {
		return list.all
	}
	list.expect(*status.Replicas == *spec.Replicas, "status.replicas is %d, expected %d", *status.Replicas, *spec.Replicas)
	if row, ok := kube.ByResource(o.Resource); ok && row.Builtin() && status.ReadyReplicas == nil {
		status.ReadyReplicas = new(int) // builtin kinds omit the field if it is 0
	}
	for _, field := range []struct {
		name  string
		found *int
	}{{"readyReplicas", status.ReadyReplicas}, {"availableReplicas", status.AvailableReplicas}} {
		if field.found != nil {
			list.add(*field.found == *spec.Replicas, true, "status.%s is %d, expected %d", field.name, *field.found, *spec.Replicas)
		}
	}
	return list.all
}

// describeController returns the controller of an object for evidence.
func (o *objectMetadata) describeController() string {
	if o.controller.UID == "" {
		return "no controller"
	}
	return fmt.Sprintf("controller %s %s", o.controller.Kind, o.controller.Name)
}
