package observe

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// resourceWatcher records every change of one resource, from watches on the API server.
type resourceWatcher struct {
	source    source
	resource  string // resource name in the history, such as "replicasets.apps"
	namespace string
	// mayBeUndefined is true for a custom resource, because its CustomResourceDefinition may be
	// created during the run. Until then, the resource has no objects.
	mayBeUndefined bool
	recorder       Recorder

	mu sync.Mutex
	// seenUpTo is a resourceVersion. The watcher has received every change up to this version.
	seenUpTo history.Version
	// latest maps the UID of each existing object to the resourceVersion that the watcher
	// received last.
	latest map[types.UID]history.Version
	// changed is closed and replaced by a new channel when latest or seenUpTo changes, to wake
	// catchUp.
	changed chan struct{}
}

func newResourceWatcher(objects source, kind kube.Kind, namespace string, recorder Recorder) *resourceWatcher {
	return &resourceWatcher{
		source:         objects,
		resource:       kind.Resource(),
		namespace:      namespace,
		mayBeUndefined: !kind.Builtin(),
		recorder:       recorder,
		latest:         map[types.UID]history.Version{},
		changed:        make(chan struct{}),
	}
}

// start records all existing objects and opens the first watch. If the resource is not defined
// yet, start returns a nil watch and a nil error. run then waits until the resource is defined.
func (w *resourceWatcher) start(ctx context.Context) (watch.Interface, error) {
	objects, version, err := w.list(ctx)
	if w.undefined(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	w.recordAll(objects, version)
	return w.open(ctx)
}

// undefined reports whether an error says that the custom resource is not defined yet.
func (w *resourceWatcher) undefined(err error) bool {
	return w.mayBeUndefined && apierrors.IsNotFound(err)
}

// run records the events of the watch stream until ctx ends. When the watch ends, run opens a
// new watch. If stream is nil, run first waits until the resource is defined.
func (w *resourceWatcher) run(ctx context.Context, stream watch.Interface) {
	if stream == nil && !w.awaitDefinition(ctx) {
		return
	}
	for {
		expired := false
		if stream != nil {
			expired = w.drain(ctx, stream)
			stream.Stop()
		}
		for stream = nil; stream == nil; {
			if !pause(ctx) {
				return
			}
			if expired {
				w.gap("watch events after resourceVersion %d are missing, because the API server no longer has them (410 Expired)", w.seen())
				w.resync(ctx)
			}
			var err error
			if stream, err = w.open(ctx); err != nil {
				stream, expired = nil, gone(err)
			}
		}
	}
}

// awaitDefinition waits until the resource is defined, and then records its objects. It returns
// false if ctx ends first.
//
// If the first list contains objects, awaitDefinition records a gap, because the history may
// miss earlier versions of these objects. It does not notice an object that was deleted before
// the first list.
func (w *resourceWatcher) awaitDefinition(ctx context.Context) bool {
	for pause(ctx) {
		objects, version, err := w.list(ctx)
		if err != nil {
			continue
		}
		if len(objects) > 0 {
			w.gap("the first list after the creation of the CustomResourceDefinition contains %d objects; their earlier versions may be missing", len(objects))
		}
		w.recordAll(objects, version)
		return true
	}
	return false
}

// pause waits for retryDelay before another attempt, such as a list after a failed list. It
// returns false if ctx ends first.
func pause(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(retryDelay):
		return true
	}
}

// drain records the events of a watch until the watch ends. The result expired is true if the
// watch ended with 410 (Expired). The API server then no longer has all events that the watcher
// has missed.
func (w *resourceWatcher) drain(ctx context.Context, stream watch.Interface) (expired bool) {
	for {
		select {
		case <-ctx.Done():
			return false
		case event, open := <-stream.ResultChan():
			if !open {
				return false
			}
			if event.Type == watch.Error {
				return gone(apierrors.FromObject(event.Object))
			}
			w.event(event)
		}
	}
}

// gone reports whether an error says that the API server no longer has the events after the
// requested resourceVersion.
func gone(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
}

// event records one watch event of an observed object.
//
// If the event modifies or deletes an unknown object, the watcher has missed an earlier event.
// In this case, event also records a gap.
func (w *resourceWatcher) event(event watch.Event) {
	object, err := history.Project(w.resource, event.Object)
	if err != nil {
		w.gap("cannot decode a watch event: %v", err)
		return
	}
	w.mu.Lock()
	_, known := w.latest[object.UID]
	w.mu.Unlock()
	if event.Type == watch.Bookmark || !w.observes(&object) {
		w.advance(object.Version)
		return
	}
	switch event.Type {
	case watch.Added:
		w.record(history.Added, object)
	case watch.Modified, watch.Deleted:
		if !known {
			w.gap("received a %s event for %s, but its ADDED event is missing", event.Type, object.Ref)
		}
		w.record(history.EventType(event.Type), object)
	}
}

// observes reports whether an object is observed: it is in the watcher's namespace, or has no
// namespace.
func (w *resourceWatcher) observes(object *history.Object) bool {
	return object.Namespace == "" || object.Namespace == w.namespace
}

// recordAll records the objects of the first list as added. The argument version is the
// resourceVersion of this list.
func (w *resourceWatcher) recordAll(objects []history.Object, version history.Version) {
	for _, object := range objects {
		w.record(history.Added, object)
	}
	w.advance(version)
}

// record appends a commit record to the history: the version of the object that etcd has
// committed. It also updates latest and seenUpTo.
func (w *resourceWatcher) record(event history.EventType, object history.Object) {
	w.recorder.Append(history.Record{Commit: &history.Commit{Type: event, Object: object}})
	w.mu.Lock()
	if event == history.Deleted {
		delete(w.latest, object.UID)
	} else {
		w.latest[object.UID] = object.Version
	}
	w.mu.Unlock()
	w.advance(object.Version)
}

// advance sets the field seenUpTo to the given version, unless seenUpTo is already higher. It wakes
// the callers that wait in catchUp. Call advance when the watcher has received every change up to
// this version.
func (w *resourceWatcher) advance(version history.Version) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seenUpTo = max(w.seenUpTo, version)
	close(w.changed)
	w.changed = make(chan struct{})
}

// resync lists all objects after the watcher has missed events, and records the versions that it
// has not received. It does not record missed deletions.
func (w *resourceWatcher) resync(ctx context.Context) {
	objects, version, err := w.list(ctx)
	if err != nil {
		return // run calls resync again, because the next watch fails for the same reason
	}
	for _, object := range objects {
		w.mu.Lock()
		seen, known := w.latest[object.UID]
		w.mu.Unlock()
		switch {
		case !known:
			w.record(history.Added, object)
		case seen < object.Version:
			w.record(history.Modified, object)
		}
	}
	w.advance(version)
}

// catchUp waits until the watcher has recorded every change that was committed before the call
// of catchUp. If the resource is not defined, catchUp returns immediately. If ctx ends first,
// the error names a version that the watcher has not received.
func (w *resourceWatcher) catchUp(ctx context.Context) error {
	objects, version, err := w.list(ctx)
	if w.undefined(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("listing %s to compare with the watch: %w", w.resource, err)
	}
	for {
		w.mu.Lock()
		changed, missing := w.changed, w.missing(objects, version)
		w.mu.Unlock()
		if missing == "" {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("the watch on %s has not yet received %s", w.resource, missing)
		}
	}
}

// missing compares a list of all objects with the versions that the watcher has received. It
// describes one object or deletion that the watcher has not received. It returns "" if the
// watcher has received all of them. The caller holds w.mu.
//
// An object counts as received if the watcher has received its listed version or a newer one.
func (w *resourceWatcher) missing(objects []history.Object, version history.Version) string {
	listed := make(map[types.UID]bool, len(objects))
	for i := range objects {
		listed[objects[i].UID] = true
		seen, known := w.latest[objects[i].UID]
		if (!known && w.seenUpTo < version) || (known && seen < objects[i].Version) {
			return fmt.Sprintf("%s at version %d", objects[i].Ref, objects[i].Version)
		}
	}
	for uid, seen := range w.latest {
		if !listed[uid] && seen < version {
			return fmt.Sprintf("the deletion of the object with UID %s", uid)
		}
	}
	return ""
}

// gap appends a gap record to the history, because commit records of the resource are missing from
// here on. The arguments are a format and its values, which give the reason.
func (w *resourceWatcher) gap(format string, args ...any) {
	w.recorder.Append(history.Record{Gap: &history.Gap{
		Source: "commits of " + w.resource,
		Detail: fmt.Sprintf(format, args...),
	}})
}

// list returns all observed objects, and the resourceVersion of the list. It uses a consistent
// read, so the list reflects all changes that were committed before the call of list.
func (w *resourceWatcher) list(ctx context.Context) ([]history.Object, history.Version, error) {
	response, err := w.source.list(ctx)
	if err != nil {
		return nil, 0, fmt.Errorf("listing all objects of %s: %w", w.resource, err)
	}
	listMeta, err := meta.ListAccessor(response)
	if err != nil {
		return nil, 0, fmt.Errorf("listing all objects of %s: %w", w.resource, err)
	}
	version, err := history.ParseVersion(listMeta.GetResourceVersion())
	if err != nil {
		return nil, 0, fmt.Errorf("listing all objects of %s: %w", w.resource, err)
	}
	var objects []history.Object
	err = meta.EachListItem(response, func(item runtime.Object) error {
		object, err := history.Project(w.resource, item)
		if err == nil && w.observes(&object) {
			objects = append(objects, object)
		}
		return err
	})
	return objects, version, err
}

// seen returns the resourceVersion up to which the watcher has received every change.
func (w *resourceWatcher) seen() history.Version {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seenUpTo
}

// open starts a watch that sends the changes after the resourceVersion seenUpTo.
func (w *resourceWatcher) open(ctx context.Context) (watch.Interface, error) {
	from := w.seen()
	stream, err := w.source.watch(ctx, metav1.ListOptions{
		ResourceVersion:     fmt.Sprint(uint64(from)),
		AllowWatchBookmarks: true,
	})
	if err != nil {
		return nil, fmt.Errorf("opening a watch on %s from resourceVersion %d: %w", w.resource, from, err)
	}
	return stream, nil
}
