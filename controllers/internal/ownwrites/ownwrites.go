// Package ownwrites detects that the informer caches do not yet contain a controller's own
// writes. It records the last writes for each owner, such as a ReplicaSet. Before the next sync of
// the owner, it reports whether the caches contain these writes.
//
// For creates and updates, it compares resourceVersions. The response to a delete has no useful
// resourceVersion. The package therefore checks whether the deleted object is still in the cache.
// The package does not wait until the caches are up to date: the callers try again later.
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

// Cache is the informer cache of one resource. Every cache.Store implements this interface.
type Cache interface {
	// LastStoreSyncResourceVersion returns the resourceVersion up to which the cache contains
	// all changes. It returns "" if this resourceVersion is unknown.
	LastStoreSyncResourceVersion() string
	// GetByKey returns the cached object with the key "namespace/name".
	GetByKey(key string) (object any, exists bool, err error)
}

var _ Cache = cache.Store(nil)

// Reached reports whether an informer cache contains all changes up to the given resourceVersion.
// It returns false if this version and the version of the cache cannot be compared.
func Reached(c Cache, resourceVersion string) bool {
	order, err := resourceversion.CompareResourceVersion(c.LastStoreSyncResourceVersion(), resourceVersion)
	return err == nil && order >= 0
}

// Tracker records a controller's last writes for each owner, such as a ReplicaSet. Its method
// StaleReason tells whether the informer caches contain these writes. A Tracker is safe for
// concurrent use.
type Tracker struct {
	caches map[string]Cache

	mu    sync.Mutex
	byKey map[string]*writes
}

// writes contains the last writes for one owner that the caches may still lack.
type writes struct {
	ownerUID types.UID
	// versions maps a resource, such as "pods", to the highest resourceVersion of the written
	// objects.
	versions map[string]string
	// deletions contains the deleted objects. StaleReason removes an element when the cache no
	// longer contains the object.
	deletions map[deletion]struct{}
}

// deletion identifies an object that the controller has deleted. Its fields are the resource, such
// as "pods", the key "namespace/name" and the UID of the object.
type deletion struct {
	resource string
	key      string
	uid      types.UID
}

// New returns an empty Tracker. The argument caches maps resource names, such as "pods", to
// their informer caches.
func New(caches map[string]Cache) *Tracker {
	return &Tracker{caches: caches, byKey: map[string]*writes{}}
}

// Wrote records that the controller created or updated an object for the owner. The argument
// resourceVersion is from the API server's response.
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

// Deleted records that the controller deleted an object for the owner. The arguments key and uid
// belong to the deleted object.
func (l *Tracker) Deleted(owner ownership.ID, resource, key string, uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writesOf(owner).deletions[deletion{resource, key, uid}] = struct{}{}
}

// writesOf returns the recorded writes for an owner, so that the caller can add one. It drops the
// writes for an earlier owner with the same key. The caller must hold l.mu.
func (l *Tracker) writesOf(owner ownership.ID) *writes {
	w := l.byKey[owner.Key]
	if w == nil || w.ownerUID != owner.UID {
		w = &writes{ownerUID: owner.UID, versions: map[string]string{}, deletions: map[deletion]struct{}{}}
		l.byKey[owner.Key] = w
	}
	return w
}

// StaleReason says which recorded write for an owner the caches still lack. It returns "" if the
// caches contain all recorded writes. The argument key is the owner's key.
//
// Call StaleReason at the start of a sync, before the sync reads the caches and before it
// records writes.
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

// cached reports whether the informer cache still contains a deleted object without a deletion
// timestamp. If the cached object has this timestamp, the cache has observed the deletion.
func (l *Tracker) cached(d deletion) bool {
	object, exists, err := l.caches[d.resource].GetByKey(d.key)
	if err != nil || !exists {
		return false
	}
	accessor, err := meta.Accessor(object)
	return err == nil && accessor.GetUID() == d.uid && accessor.GetDeletionTimestamp() == nil
}

// Forget drops the recorded writes for an owner. It does nothing if the recorded writes belong
// to another owner with the same key and a different UID.
func (l *Tracker) Forget(owner ownership.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w := l.byKey[owner.Key]; w != nil && w.ownerUID == owner.UID {
		delete(l.byKey, owner.Key)
	}
}

// ForgetKey drops the recorded writes for the owner with the given key, whatever UID the owner had.
// Call it when the owner no longer exists.
func (l *Tracker) ForgetKey(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byKey, key)
}
