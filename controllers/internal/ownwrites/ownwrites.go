// Package ownwrites detects that the informer caches do not yet contain a controller's own
// writes. It records the last writes for each owner. Before the next sync, it reports whether
// the caches contain these writes.
//
// It compares creates and updates by resourceVersion. The response to a delete has no useful
// resourceVersion, so the package checks whether the deleted object is still in the cache. The
// package does not wait: its callers try again later.
package ownwrites

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"

	"github.com/kube-gauntlet/gauntlet/controllers/internal/ownership"
)

// Cache is the informer cache of one resource. cache.Store implements this interface.
type Cache interface {
	// LastStoreSyncResourceVersion returns the resourceVersion up to which the cache has all
	// changes, or "" if it is unknown.
	LastStoreSyncResourceVersion() string
	// GetByKey returns the object with the key "namespace/name".
	GetByKey(key string) (object any, exists bool, err error)
}

var _ Cache = cache.Store(nil)

// Reached reports whether the cache has all changes up to resourceVersion. It returns false if
// the versions cannot be compared.
func Reached(c Cache, resourceVersion string) bool {
	order, err := resourceversion.CompareResourceVersion(c.LastStoreSyncResourceVersion(), resourceVersion)
	return err == nil && order >= 0
}

// Tracker records the last writes for many owners. It is safe for concurrent use.
type Tracker struct {
	caches map[string]Cache

	mu    sync.Mutex
	byKey map[string]*writes
}

// writes are the last writes for one owner.
type writes struct {
	ownerUID types.UID
	// versions contains the highest resourceVersion of the written objects, by resource.
	versions map[string]string
	// deletions contains the deleted objects. StaleReason removes an object when the cache no
	// longer contains it.
	deletions map[deletion]struct{}
}

// deletion identifies a deleted object.
type deletion struct {
	resource string
	key      string
	uid      types.UID
}

// New returns an empty Tracker. The keys of caches are resource names, such as "pods".
func New(caches map[string]Cache) *Tracker {
	return &Tracker{caches: caches, byKey: map[string]*writes{}}
}

// Wrote records that the controller created or updated an object for owner. The response had
// the given resourceVersion.
func (l *Tracker) Wrote(owner ownership.ID, resource, resourceVersion string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.writesOf(owner)
	last, recorded := w.versions[resource]
	if recorded {
		if order, err := resourceversion.CompareResourceVersion(last, resourceVersion); err == nil && order >= 0 {
			return
		}
	}
	w.versions[resource] = resourceVersion
}

// Deleted records that the controller deleted the object with the given key and UID for owner.
func (l *Tracker) Deleted(owner ownership.ID, resource, key string, uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writesOf(owner).deletions[deletion{resource, key, uid}] = struct{}{}
}

// writesOf returns the writes for owner. It drops the writes for an earlier owner with the
// same key. The caller must hold l.mu.
func (l *Tracker) writesOf(owner ownership.ID) *writes {
	w := l.byKey[owner.Key]
	if w == nil || w.ownerUID != owner.UID {
		w = &writes{ownerUID: owner.UID, versions: map[string]string{}, deletions: map[deletion]struct{}{}}
		l.byKey[owner.Key] = w
	}
	return w
}

// StaleReason says which write for an owner the caches do not contain yet. It returns "" if
// they contain all writes. A sync of the owner must call it first, before it reads the caches
// and before it records writes.
func (l *Tracker) StaleReason(key string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.byKey[key]
	if w == nil {
		return ""
	}
	for resource, written := range w.versions {
		read := l.caches[resource].LastStoreSyncResourceVersion()
		// Versions that cannot be compared must not block the owner forever.
		if order, err := resourceversion.CompareResourceVersion(read, written); err == nil && order < 0 {
			return fmt.Sprintf("the informer cache of %s is at resourceVersion %s, the last write of this controller is at %s", resource, read, written)
		}
		delete(w.versions, resource)
	}
	for d := range w.deletions {
		if l.cached(d) {
			return fmt.Sprintf("the informer cache of %s still contains %s, which this controller has deleted", d.resource, d.key)
		}
		delete(w.deletions, d)
	}
	delete(l.byKey, key)
	return ""
}

// cached reports whether the cache still contains the deleted object without a deletion
// timestamp.
func (l *Tracker) cached(d deletion) bool {
	object, exists, err := l.caches[d.resource].GetByKey(d.key)
	if err != nil || !exists {
		return false
	}
	accessor, err := meta.Accessor(object)
	return err == nil && accessor.GetUID() == d.uid && accessor.GetDeletionTimestamp() == nil
}

// Forget drops the writes for owner. It does nothing if they belong to an owner with the same
// key and another UID.
func (l *Tracker) Forget(owner ownership.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w := l.byKey[owner.Key]; w != nil && w.ownerUID == owner.UID {
		delete(l.byKey, owner.Key)
	}
}

// ForgetKey drops the writes for the owner with the given key, whatever its UID is.
func (l *Tracker) ForgetKey(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byKey, key)
}
