// Package ownwrites detects that a controller's caches do not contain its own writes
// yet. It records the last writes for each owner, and reports whether the informer
// caches already contain them before the next sync reads these caches.
//
// Creates and updates are compared by resourceVersion, which orders the changes of one
// resource. A delete response has no useful resourceVersion, so deletes are compared
// by the state of the object in the cache. The package does not wait: the caller
// retries later.
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

// Cache is the informer cache of one resource. cache.Store implements it.
type Cache interface {
	// LastStoreSyncResourceVersion returns the resourceVersion that the cache has
	// reached, or "" if it is unknown.
	LastStoreSyncResourceVersion() string
	// GetByKey returns the object under "namespace/name".
	GetByKey(key string) (object any, exists bool, err error)
}

var _ Cache = cache.Store(nil)

// Reached reports whether c has reached resourceVersion. It returns false if the
// versions cannot be compared.
func Reached(c Cache, resourceVersion string) bool {
	order, err := resourceversion.CompareResourceVersion(c.LastStoreSyncResourceVersion(), resourceVersion)
	return err == nil && order >= 0
}

// Tracker records the writes of many owners. It is safe for concurrent use.
type Tracker struct {
	caches map[string]Cache

	mu    sync.Mutex
	byKey map[string]*writes
}

type writes struct {
	ownerUID types.UID
	// versions holds the newest resourceVersion written, by resource.
	versions map[string]string
	// deletions holds the deleted objects, until StaleReason finds that the caches no
	// longer contain them.
	deletions map[deletion]struct{}
}

type deletion struct {
	resource string
	key      string
	uid      types.UID
}

// New returns an empty Tracker. The keys of caches are resource names.
func New(caches map[string]Cache) *Tracker {
	return &Tracker{caches: caches, byKey: map[string]*writes{}}
}

// Wrote records that an object of resource was created or updated for owner, and that
// the response had resourceVersion.
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

// Deleted records that the object of resource under key was deleted for owner.
func (l *Tracker) Deleted(owner ownership.ID, resource, key string, uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writesOf(owner).deletions[deletion{resource, key, uid}] = struct{}{}
}

// writesOf returns the writes of owner and drops those of an earlier owner with the
// same key. The caller must hold the lock.
func (l *Tracker) writesOf(owner ownership.ID) *writes {
	w := l.byKey[owner.Key]
	if w == nil || w.ownerUID != owner.UID {
		w = &writes{ownerUID: owner.UID, versions: map[string]string{}, deletions: map[deletion]struct{}{}}
		l.byKey[owner.Key] = w
	}
	return w
}

// StaleReason explains which write for the owner under key the caches do not contain
// yet. It returns "" if they contain all of them. Call it before reading the caches,
// and not while a sync of the owner is running.
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

func (l *Tracker) cached(d deletion) bool {
	object, exists, err := l.caches[d.resource].GetByKey(d.key)
	if err != nil || !exists {
		return false
	}
	accessor, err := meta.Accessor(object)
	return err == nil && accessor.GetUID() == d.uid && accessor.GetDeletionTimestamp() == nil
}

// Forget drops the writes of owner. An object with the same key and another UID keeps
// its own.
func (l *Tracker) Forget(owner ownership.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w := l.byKey[owner.Key]; w != nil && w.ownerUID == owner.UID {
		delete(l.byKey, owner.Key)
	}
}

// ForgetKey drops the writes of any owner under key.
func (l *Tracker) ForgetKey(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byKey, key)
}
