package check

import (
	"maps"
	"net/url"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// cachedPodState is one state of a pod in the cache of a process. A new state begins when the
// pod's labels or controllerRef change, or when the pod becomes active or inactive.
type cachedPodState struct {
	pod   *objects.Pod
	since int64         // sequence number of the record with the list or watch event that delivered the state
	until time.Duration // when the next state was delivered; 0 while the state is current
}

// watchScope says which objects a list or watch request asks for, such as the pods of one
// namespace.
type watchScope struct {
	resource  string
	namespace string // empty if the request asks for all namespaces
	// selective is true if the request has a selector or names one object. An object that the
	// response does not contain may then still exist.
	selective bool
	// initial is true for a watch with sendInitialEvents=true. The first events of such a watch
	// take the place of a list.
	initial bool
}

// watchScopeOf returns which objects a list or watch request asks for. If the query cannot be
// parsed, it assumes that the request does not ask for all objects.
func watchScopeOf(r *history.Request) watchScope {
	scope := watchScope{resource: r.Resource, namespace: r.Namespace}
	query, err := url.ParseQuery(r.Query)
	if err != nil {
		scope.selective = true
		return scope
	}
	scope.selective = r.Name != "" || query.Has("fieldSelector") || query.Has("labelSelector")
	scope.initial = query.Get("sendInitialEvents") == "true"
	return scope
}

// isDirectList reports whether a list with a selector comes from the controller itself, and not from
// an informer. The listed objects then do not reach the cache. An example is the list of a
// Deployment's ReplicaSets that upstream sends when a pod was deleted.
//
// An informer of client-go sends limit or resourceVersion. The exception is a list of more than 500
// objects whose continue token has expired, which the model ignores too.
func isDirectList(r *history.Request) bool {
	query, err := url.ParseQuery(r.Query)
	selective := query.Has("fieldSelector") || query.Has("labelSelector")
	return err == nil && selective && !query.Has("limit") && !query.Has("resourceVersion")
}

// newView returns the informer caches of a process that has received nothing yet.
func newView(d *objects.Decoder, tested *testedControllers) *view {
	set := newObjectSet()
	set.metadata = newMetadataSet(tested)
	return &view{
		objectSet:      set,
		decoder:        d,
		tested:         tested,
		reachedVersion: map[string]history.Version{},
		requestedAll:   map[string]bool{},
		listPages:      map[watchScope][]history.Object{},
		podStateSince:  map[types.UID]int64{},
		formerPods:     map[types.UID][]cachedPodState{},

		podVersionsSince: map[types.UID][]cachedVersion[*objects.Pod]{},

		firstCachedAt: map[types.UID]time.Duration{},
		podVersions:   newPodVersions(),
	}
}

// watchStream is an open watch of a process, or a list request whose response is not in the
// history yet.
type watchStream struct {
	process *process
	scope   watchScope
	// initial collects the initial objects of a watch with sendInitialEvents=true. An informer puts
	// them into its cache only when a bookmark says that they are complete. The model then does the
	// same, and sets initial to nil.
	initial map[types.UID]history.Object
}

// newWatchStream returns the watchStream of a new list or watch request.
func newWatchStream(p *process, scope watchScope) *watchStream {
	s := &watchStream{process: p, scope: scope}
	if scope.initial {
		s.initial = map[types.UID]history.Object{}
	}
	return s
}

// deliver applies a watch event to the cache. The first result (complete) is true after a bookmark:
// the cache then contains every object up to the bookmark's resourceVersion. deliver returns an
// error if the object cannot be decoded.
func (v *view) deliver(s *watchStream, d *history.Delivery, seq int64, at time.Duration) (complete bool, err error) {
	switch {
	case d.Type == history.Error:
		return false, nil
	case d.InitialEventsEnd && s.initial != nil:
		objects := make([]history.Object, 0, len(s.initial))
		for _, o := range s.initial {
			objects = append(objects, o)
		}
		s.initial = nil
		return true, v.replace(s.scope, objects, d.Object.Version, seq, at)
	case s.initial != nil && d.Type == history.Deleted:
		delete(s.initial, d.Object.UID)
		return false, nil
	case s.initial != nil && d.Type != history.Bookmark:
		s.initial[d.Object.UID] = d.Object
		return false, nil
	case s.initial != nil:
		return false, nil
	}
	v.advance(s.scope.resource, d.Object.Version)
	switch d.Type {
	case history.Bookmark:
		return true, nil
	case history.Deleted:
		v.drop(d.Resource, d.Object.UID, at)
		return false, nil
	default:
		return false, v.putObject(&d.Object, seq, at)
	}
}

// list adds one page of a list response. After the last page, it puts the objects of all pages into
// the cache, and returns true. It returns an error if an object cannot be decoded.
func (v *view) list(scope watchScope, l *history.List, seq int64, at time.Duration) (complete bool, err error) {
	items := l.Items
	if l.Continued {
		items = append(v.listPages[scope], items...)
	}
	delete(v.listPages, scope)
	if l.More {
		v.listPages[scope] = items
		return false, nil
	}
	return true, v.replace(scope, items, l.Version, seq, at)
}

// replace replaces cached objects with the objects of a complete list. The parameter scope says
// which objects the list request covers. Like an informer, replace does so even if the list is
// older than the cache.
//
// If the request has a selector or names one object, replace removes no object from the cache. An
// object that the list does not contain may still exist. The parameter at is the list's
// resourceVersion; now is the current time.
func (v *view) replace(scope watchScope, objects []history.Object, at history.Version, seq int64, now time.Duration) error {
	v.relisted = true
	listed := make(map[types.UID]bool, len(objects))
	for i := range objects {
		listed[objects[i].UID] = true
		if err := v.putObject(&objects[i], seq, now); err != nil {
			return err
		}
	}
	if scope.selective {
		return nil
	}
	cached := v.refs(scope.resource)
	v.metadata.collectRefs(cached, scope.resource)
	for uid, ref := range cached {
		if scope.covers(ref) && !listed[uid] {
			v.drop(scope.resource, uid, now)
		}
	}
	v.advance(scope.resource, at)
	return nil
}

// covers reports whether the list or watch with this scope asks for objects in the namespace of the
// given object.
func (scope watchScope) covers(r history.Ref) bool {
	return scope.namespace == "" || scope.namespace == r.Namespace
}

// advance raises reachedVersion of a resource to the given resourceVersion. It never lowers
// reachedVersion.
func (v *view) advance(resource string, at history.Version) {
	v.reachedVersion[resource] = max(v.reachedVersion[resource], at)
}

// putObject puts a version of an object into the cache.
//
// An object without a body came from a watch of metadata only, and putObject stores only its
// metadata. Endpoints are an exception, because Endpoints without addresses have no body either.
// putObject returns an error if the object cannot be decoded.
func (v *view) putObject(o *history.Object, seq int64, at time.Duration) error {
	v.metadata.put(o)
	if len(o.Body) == 0 && o.Resource != objects.EndpointsResource {
		return nil
	}
	decoded, err := v.decoder.Decode(o)
	if err != nil {
		return err
	}
	p, ok := decoded.(*objects.Pod)
	if !ok {
		v.put(decoded)
		return nil
	}
	if v.pods[p.UID] == nil {
		v.firstCachedAt[p.UID] = at
	}
	v.podVersions.add(p, o.Body, at)
	if n := len(v.podVersionsSince[p.UID]); n == 0 || !sameForScaleDown(v.podVersionsSince[p.UID][n-1].value, p) {
		v.podVersionsSince[p.UID] = append(keepSince(v.podVersionsSince[p.UID], at-decisionWindowMax), cachedVersion[*objects.Pod]{at, p})
	}
	if old := v.pods[p.UID]; old == nil || !sameForAdoption(old, p) {
		v.recordFormer(p.UID, at)
		v.podStateSince[p.UID] = seq
	}
	v.setPod(p)
	return nil
}

// drop removes an object from the cache. The last state of a removed pod goes to formerPods.
func (v *view) drop(resource string, uid types.UID, at time.Duration) {
	v.metadata.remove(uid)
	if resource != objects.PodResource {
		v.remove(resource, uid)
		return
	}
	v.recordFormer(uid, at)
	v.podVersions.remove(uid, at)
	delete(v.podStateSince, uid)
	delete(v.firstCachedAt, uid)
	delete(v.podVersionsSince, uid)
	v.removePod(uid)
}

// recordFormer adds the present state of a cached pod to formerPods, because a worker may still act
// on it. The parameter at is the time when this state ends.
func (v *view) recordFormer(uid types.UID, at time.Duration) {
	if p := v.pods[uid]; p != nil {
		v.formerPods[uid] = append(v.formerPods[uid], cachedPodState{pod: p, since: v.podStateSince[uid], until: at})
	}
}

// cachedPodStates returns the cached states of a pod on which a worker may have acted, oldest
// first.
func (v *view) cachedPodStates(uid types.UID) []cachedPodState {
	seen := v.formerPods[uid]
	if p := v.pods[uid]; p != nil {
		seen = append(seen[:len(seen):len(seen)], cachedPodState{pod: p, since: v.podStateSince[uid]})
	}
	return seen
}

// atMostOneOwner reports whether the pod recently had at most one ReplicaSet or
// ReplicationController as owner in the cache. If it had several, the model cannot know for which
// owner the process deleted the pod.
func (v *view) atMostOneOwner(uid types.UID) bool {
	managers := map[types.UID]bool{}
	for _, seen := range v.cachedPodStates(uid) {
		if v.tested.manages(seen.pod) {
			managers[seen.pod.Controller.UID] = true
		}
	}
	return len(managers) <= 1
}

// lookup returns the pod that a request names, in the last version that the cache contained. It
// searches by UID or, if uid is empty, by namespace and name. It returns nil if the cache contained
// no version of the pod that the controller may have acted on.
func (v *view) lookup(namespace, name string, uid types.UID) *objects.Pod {
	if uid == "" {
		if p := v.podNamed(namespace, name); p != nil {
			return p
		}
	} else if p := v.pods[uid]; p != nil {
		return p
	}
	for id, seen := range v.formerPods {
		p := seen[len(seen)-1].pod
		if id == uid || (uid == "" && p.Namespace == namespace && p.Name == name) {
			return p
		}
	}
	return nil
}

// prune removes from formerPods all pod states that ended before the time in the parameter limit.
// No worker can act on these states any more.
func (v *view) prune(limit time.Duration) {
	for uid, seen := range v.formerPods {
		kept := seen[:0:0]
		for _, s := range seen {
			if s.until >= limit {
				kept = append(kept, s)
			}
		}
		if len(kept) == 0 {
			delete(v.formerPods, uid)
		} else {
			v.formerPods[uid] = kept
		}
	}
}

// sameForAdoption reports whether two versions of a pod are equal in all fields that decide about
// adoption and release. These fields are the controllerRef, the labels, and whether the pod is
// active. Two such versions belong to the same cachedPodState.
func sameForAdoption(p, other *objects.Pod) bool {
	return p.Controller == other.Controller && p.Active == other.Active && maps.Equal(p.Labels, other.Labels)
}

// sameForScaleDown reports whether two versions of a pod are equal in all fields that decide the
// order of a scale-down. The view then stores only the first of them.
func sameForScaleDown(p, other *objects.Pod) bool {
	return sameForAdoption(p, other) && p.DeletionOrder == other.DeletionOrder && p.Ready == other.Ready && p.ReadySince.Equal(other.ReadySince)
}

// upToDate reports whether the caches contain exactly the committed versions of all objects in a
// namespace that the process watches. It is false while a cache has not received its first list.
func (v *view) upToDate(committed *objectSet, namespace string) bool {
	elsewhere := func(_ types.UID, ref history.Ref) bool { return ref.Namespace != namespace }
	for resource, all := range v.requestedAll {
		if !all {
			continue
		}
		cached, current := v.refs(resource), committed.refs(resource)
		maps.DeleteFunc(cached, elsewhere)
		maps.DeleteFunc(current, elsewhere)
		if v.reachedVersion[resource] == 0 || !maps.Equal(cached, current) {
			return false
		}
	}
	return true
}
