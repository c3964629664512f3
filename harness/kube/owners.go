package kube

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Owners finds the resource of an owner, such as "replicasets.apps", from an ownerReference. An
// ownerReference in a history contains the owner's kind and UID, but not the API group.
//
// The zero value is ready to use. Owners is not safe for concurrent use.
type Owners struct {
	byUID    map[types.UID]string // the resource of each observed object, by UID
	byPlural map[string]string    // the resource, such as "jobs.batch", by its plural name, such as "jobs"
}

// Observe stores the resource of an object, such as "jobs.batch", because other objects may name
// the object as their owner.
func (o *Owners) Observe(uid types.UID, resource string) {
	if o.byUID == nil {
		o.byUID, o.byPlural = map[types.UID]string{}, map[string]string{}
	}
	if uid != "" {
		o.byUID[uid] = resource
	}
	plural, _, _ := strings.Cut(resource, ".")
	o.byPlural[plural] = resource
}

// Forget removes an object from the table of UIDs, because the object no longer exists.
func (o *Owners) Forget(uid types.UID) { delete(o.byUID, uid) }

// Resource returns the resource of the owner with the given UID and kind, such as "jobs.batch".
// It uses the first of these that exists:
//
//   - the resource of the observed object with this UID
//   - the resource of the kind in the table of kinds
//   - the resource of an observed object whose plural name fits the kind
//   - the kind itself
func (o *Owners) Resource(uid types.UID, kind string) string {
	if resource, ok := o.byUID[uid]; ok {
		return resource
	}
	if k, ok := Named(kind); ok {
		return k.Resource()
	}
	if resource, ok := o.byPlural[Plural(kind)]; ok {
		return resource
	}
	return kind
}
