package observe

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// FollowOptions says which objects a [Follower] observes and where it records their committed
// versions.
type FollowOptions struct {
	// Etcd is a client of the cluster's etcd. The client needs permission to read all keys.
	Etcd      *clientv3.Client
	Namespace string
	// Kinds lists the API kinds to observe. For a namespaced kind, the Follower observes only
	// objects in Namespace. For a cluster-scoped kind, it observes all objects.
	Kinds    []kube.Kind
	Recorder Recorder
}

// Follower records every change that etcd commits to the observed objects, until the caller
// stops it.
//
// A Follower does not need the API server. An outage of the API server therefore leaves no gap
// in the history. A watch on the API server can miss changes: a restarted API server sends no
// events from before its start. etcd keeps the changes until a compaction.
type Follower struct {
	FollowOptions
	keys   etcdKeys
	cancel context.CancelFunc
	ended  chan struct{} // closed when run has returned

	// latest maps the etcd key of each existing object to its last recorded version. After the
	// watch has missed changes, resync compares these versions with those in etcd.
	latest map[string]history.Object

	mu sync.Mutex
	// seenUpTo is an etcd revision. The Follower has recorded every change up to this revision.
	seenUpTo int64
	// changed is closed and replaced by a new channel when seenUpTo changes, to wake CatchUp.
	changed chan struct{}
}

// Follow records all existing objects and then watches etcd for changes. The end of ctx stops only the
// first step. The caller must stop the Follower before it closes the Recorder.
func Follow(ctx context.Context, options FollowOptions) (*Follower, error) {
	f := &Follower{
		FollowOptions: options,
		keys:          newEtcdKeys(options.Namespace, options.Kinds),
		ended:         make(chan struct{}), changed: make(chan struct{}),
		latest: map[string]history.Object{},
	}
	if err := f.resync(ctx); err != nil {
		return nil, fmt.Errorf("observing namespace %s: %w", f.Namespace, err)
	}
	ctx, f.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(f.ended)
		f.run(ctx)
	}()
	return f, nil
}

// CatchUp waits until the Follower has recorded every change that was committed before the call
// of CatchUp. If ctx ends first, the error names the missing etcd revisions.
func (f *Follower) CatchUp(ctx context.Context) error {
	// The header of every response contains etcd's current revision, so any key will do.
	response, err := f.Etcd.Get(ctx, "/", clientv3.WithCountOnly())
	if err != nil {
		return fmt.Errorf("reading the current revision of etcd: %w", err)
	}
	for {
		f.mu.Lock()
		seen, changed := f.seenUpTo, f.changed
		f.mu.Unlock()
		if seen >= response.Header.Revision {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("the watch on etcd has not yet received the revisions %d to %d", seen+1, response.Header.Revision)
		}
	}
}

// Stop ends the watch. When Stop returns, the Follower no longer records anything.
func (f *Follower) Stop() {
	f.cancel()
	<-f.ended
}

// run records changes from etcd until ctx ends.
//
// If etcd has compacted changes that the Follower has not read, run records a gap: the history
// misses these changes. It then calls resync until a call succeeds, and continues.
func (f *Follower) run(ctx context.Context) {
	for {
		err := f.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		f.gap("%v", err)
		for failed := true; failed; failed = f.resync(ctx) != nil {
			select {
			case <-ctx.Done():
				return
			case <-time.After(retryDelay):
			}
		}
	}
}

// follow watches etcd and records all changes after the revision seenUpTo. It returns an error when
// ctx ends, or when etcd has compacted the revision after seenUpTo.
//
// The etcd client reconnects by itself after a broken connection or a restart of etcd.
func (f *Follower) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// The watch includes all keys, so that every commit advances seenUpTo. Otherwise etcd could
	// compact the revision seenUpTo + 1, from which the next watch must start.
	watch := f.Etcd.Watch(ctx, "\x00", clientv3.WithFromKey(), clientv3.WithRev(f.seenUpTo+1))
	for response := range watch {
		if err := response.Err(); err != nil {
			return fmt.Errorf("watching etcd from revision %d: %w", f.seenUpTo+1, err)
		}
		for _, event := range response.Events {
			f.event(event)
		}
		if n := len(response.Events); n > 0 {
			f.advance(response.Events[n-1].Kv.ModRevision)
		}
	}
	return fmt.Errorf("the watch on etcd ended; the last received revision is %d", f.seenUpTo)
}

// event records one change from etcd. It ignores keys that do not belong to an observed object.
func (f *Follower) event(event *clientv3.Event) {
	key := string(event.Kv.Key)
	kind, observed := f.keys.kindOf(key)
	if !observed {
		return
	}
	before, known := f.latest[key]
	if event.Type == clientv3.EventTypeDelete {
		if !known {
			f.gap("etcd key %s was deleted, but the watch on etcd has not received its creation", key)
			return
		}
		f.recordDeletion(key, before, event.Kv.ModRevision)
		return
	}
	object, err := decode(kind, event.Kv)
	switch {
	case err != nil:
		f.gap("cannot decode etcd key %s: %v", key, err)
	case event.IsCreate():
		f.record(history.Added, key, object)
	case !known:
		f.gap("%s was modified, but the watch on etcd has not received its creation", object.Ref)
		f.record(history.Modified, key, object)
	default:
		f.record(history.Modified, key, object)
	}
}

// resync reads all observed objects from etcd and compares them with their last recorded versions.
// It records each object that was created, modified or deleted after its last recorded version. The
// first call records all objects.
func (f *Follower) resync(ctx context.Context) error {
	present, revision, err := f.snapshot(ctx)
	if err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(f.latest)) {
		if _, still := present[key]; !still {
			f.recordDeletion(key, f.latest[key], revision)
		}
	}
	inOrder := slices.SortedFunc(maps.Keys(present), func(a, b string) int {
		return int(present[a].Version) - int(present[b].Version)
	})
	for _, key := range inOrder {
		switch before, known := f.latest[key]; {
		case !known:
			f.record(history.Added, key, present[key])
		case before.Version < present[key].Version:
			f.record(history.Modified, key, present[key])
		}
	}
	f.advance(revision)
	return nil
}

// snapshot reads all observed objects at one etcd revision, and returns this revision. The map
// contains each object under its etcd key.
func (f *Follower) snapshot(ctx context.Context) (map[string]history.Object, int64, error) {
	present := map[string]history.Object{}
	// The first read uses revision 0, which means the current revision. All other reads use the
	// revision of the first read.
	revision := int64(0)
	for _, kind := range f.keys.kinds {
		response, err := f.Etcd.Get(ctx, f.keys.prefix(kind), clientv3.WithPrefix(), clientv3.WithRev(revision))
		if err != nil {
			return nil, 0, fmt.Errorf("reading all objects of %s from etcd: %w", kind.Resource(), err)
		}
		if revision == 0 {
			revision = response.Header.Revision
		}
		for _, kv := range response.Kvs {
			key := string(kv.Key)
			if !f.keys.observes(strings.TrimPrefix(key, kind.EtcdPrefix)) {
				continue
			}
			if present[key], err = decode(kind, kv); err != nil {
				return nil, 0, fmt.Errorf("reading key %s from etcd: %w", key, err)
			}
		}
	}
	return present, revision, nil
}

// record appends a commit record to the history for an object that etcd has created or modified.
// It also stores the object in the field latest.
func (f *Follower) record(event history.EventType, key string, object history.Object) {
	f.latest[key] = object
	f.Recorder.Append(history.Record{Commit: &history.Commit{Type: event, Object: object}})
}

// recordDeletion appends a commit record for a deletion. As in a DELETED event of the API
// server, the record contains the object's last state. Its resourceVersion is the revision of
// the deletion.
func (f *Follower) recordDeletion(key string, last history.Object, revision int64) {
	delete(f.latest, key)
	last.Version = history.Version(revision)
	f.Recorder.Append(history.Record{Commit: &history.Commit{Type: history.Deleted, Object: last}})
}

// advance sets seenUpTo to the given revision, unless seenUpTo is already higher. It wakes the
// callers that wait in CatchUp.
func (f *Follower) advance(revision int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seenUpTo = max(f.seenUpTo, revision)
	close(f.changed)
	f.changed = make(chan struct{})
}

// gap appends a gap record to the history, because commit records are missing from here on. The
// arguments are a format and its values, which give the reason.
func (f *Follower) gap(format string, args ...any) {
	f.Recorder.Append(history.Record{Gap: &history.Gap{Source: "commits", Detail: fmt.Sprintf(format, args...)}})
}
