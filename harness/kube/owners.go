package kube

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Owners finds the resource of an owner. An ownerReference in a history has the kind of the
// owner, but not its API group. The zero value is ready to use. It is not safe for
// concurrent use.
type Owners struct {
	byUID    map[types.UID]string
	byPlural map[string]string // the resource by its plural name without the API group
}

// Observe records the resource of an object that may be an owner.
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

// Forget drops the record of an object that no longer exists.
func (o *Owners) Forget(uid types.UID) { delete(o.byUID, uid) }

// Resource returns the resource of the owner with the given UID and kind. If the owner was
// not observed, the kind decides: its row, or else an observed object of the kind. Resource
// returns the kind itself if neither exists.
func (o *Owners) Resource(uid types.UID, kind string) string {
	if resource, ok := o.byUID[uid]; ok {
		return resource
	}
	if k, ok := Named(kind); ok {
		return k.Resource()
	}
	plural, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Kind: kind})
	if resource, ok := o.byPlural[plural.Resource]; ok {
		return resource
	}
	return kind
}
