package observe

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// FollowOptions says what to observe and where to record it.
type FollowOptions struct {
	// Etcd reaches the cluster's etcd, with the right to read everything.
	Etcd      *clientv3.Client
	Namespace string
	Recorder  Recorder
}

// Follower records the truth, as it is committed to etcd, until it is stopped. It
// needs no API server, and an outage leaves no gap: what was committed just before
// an API server ended nobody is told of any more who watches there, since the next
// one begins with an empty history. etcd keeps it.
type Follower struct {
	FollowOptions
	cancel context.CancelFunc
	ended  chan struct{}

	// latest is the last version seen of every object that lives, by its key.
	latest map[string]history.Object

	mu sync.Mutex
	// seenUpTo is the revision up to which everything has been seen and recorded.
	seenUpTo int64
	// changed is closed, and replaced, whenever at changes.
	changed chan struct{}
}

// Follow records what is there, and watches from then on what happens to it. Stop
// it before the Recorder is closed.
func Follow(ctx context.Context, options FollowOptions) (*Follower, error) {
	o := &Follower{
		FollowOptions: options,
		ended:         make(chan struct{}), changed: make(chan struct{}),
		latest: map[string]history.Object{},
	}
	if err := o.resync(ctx); err != nil {
		return nil, fmt.Errorf("observing %s: %w", o.Namespace, err)
	}
	ctx, o.cancel = context.WithCancel(ctx)
	go func() {
		defer close(o.ended)
		o.run(ctx)
	}()
	return o, nil
}

// CatchUp returns when the follower has recorded everything that was committed
// before the call. The error is that of [Observer.CatchUp].
func (o *Follower) CatchUp(ctx context.Context) error {
	// The key does not matter: every answer says how far etcd is.
	answer, err := o.Etcd.Get(ctx, "/", clientv3.WithCountOnly())
	if err != nil {
		return fmt.Errorf("asking etcd how far it is: %w", err)
	}
	for {
		o.mu.Lock()
		at, moved := o.seenUpTo, o.changed
		o.mu.Unlock()
		if at >= answer.Header.Revision {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return fmt.Errorf("what followed version %d has not been seen, up to %d", at, answer.Header.Revision)
		}
	}
}

// Stop ends the watch and returns when nothing more is recorded.
func (o *Follower) Stop() {
	o.cancel()
	<-o.ended
}

// run follows etcd until ctx is done, and begins anew where it lost it.
func (o *Follower) run(ctx context.Context) {
	for {
		err := o.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		o.gap("%v", err)
		for again := true; again; again = o.resync(ctx) != nil {
			select {
			case <-ctx.Done():
				return
			case <-time.After(retryDelay):
			}
		}
	}
}

// follow records what is committed after what was seen. It ends with ctx, or when
// etcd no longer has what comes next; a connection that breaks, and an etcd that
// is started again, the client follows through by itself.
func (o *Follower) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// All keys, so that whatever is committed shows how far the watch is: one of
	// fewer keys would fall behind what etcd keeps of the past.
	watch := o.Etcd.Watch(ctx, "\x00", clientv3.WithFromKey(), clientv3.WithRev(o.seenUpTo+1))
	for answer := range watch {
		if err := answer.Err(); err != nil {
			return fmt.Errorf("watching etcd from version %d: %w", o.seenUpTo+1, err)
		}
		for _, event := range answer.Events {
			o.event(event)
		}
		if n := len(answer.Events); n > 0 {
			o.advance(answer.Events[n-1].Kv.ModRevision)
		}
	}
	return errors.New("etcd's watch has ended")
}

// event records one change, if it is of an object that is observed.
func (o *Follower) event(event *clientv3.Event) {
	key := string(event.Kv.Key)
	resource := o.resourceOf(key)
	if resource == "" {
		return
	}
	before, known := o.latest[key]
	if event.Type == clientv3.EventTypeDelete {
		if !known {
			o.gap("%s was deleted and had not been seen before", key)
			return
		}
		o.recordDeletion(key, before, event.Kv.ModRevision)
		return
	}
	object, err := decode(resource, event.Kv)
	switch {
	case err != nil:
		o.gap("%s cannot be read: %v", key, err)
	case event.IsCreate():
		o.record(history.Added, key, object)
	case !known:
		o.gap("%s was modified and had not been seen before", object.Ref)
		o.record(history.Modified, key, object)
	default:
		o.record(history.Modified, key, object)
	}
}

// resync takes what is there now for the truth: at the start all there is, and
// after a gap what has become of it meanwhile.
func (o *Follower) resync(ctx context.Context) error {
	present, revision, err := o.snapshot(ctx)
	if err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(o.latest)) {
		if _, still := present[key]; !still {
			o.recordDeletion(key, o.latest[key], revision)
		}
	}
	inOrder := slices.SortedFunc(maps.Keys(present), func(a, b string) int {
		return int(present[a].Version) - int(present[b].Version)
	})
	for _, key := range inOrder {
		switch before, known := o.latest[key]; {
		case !known:
			o.record(history.Added, key, present[key])
		case before.Version < present[key].Version:
			o.record(history.Modified, key, present[key])
		}
	}
	o.advance(revision)
	return nil
}

// snapshot is all objects by their keys, and the revision at which they stood so.
func (o *Follower) snapshot(ctx context.Context) (map[string]history.Object, int64, error) {
	present := map[string]history.Object{}
	revision := int64(0) // whichever is the present one, and from then on that
	for _, resource := range slices.Sorted(maps.Keys(prefixes)) {
		answer, err := o.Etcd.Get(ctx, prefixes[resource]+o.Namespace+"/", clientv3.WithPrefix(), clientv3.WithRev(revision))
		if err != nil {
			return nil, 0, fmt.Errorf("reading %s from etcd: %w", resource, err)
		}
		if revision == 0 {
			revision = answer.Header.Revision
		}
		for _, kv := range answer.Kvs {
			if present[string(kv.Key)], err = decode(resource, kv); err != nil {
				return nil, 0, fmt.Errorf("reading %s from etcd: %w", kv.Key, err)
			}
		}
	}
	return present, revision, nil
}

// resourceOf is the resource of an object that is observed, by its key; "" is none.
func (o *Follower) resourceOf(key string) string {
	for resource, prefix := range prefixes {
		if strings.HasPrefix(key, prefix+o.Namespace+"/") {
			return resource
		}
	}
	return ""
}

func (o *Follower) record(event history.EventType, key string, object history.Object) {
	o.latest[key] = object
	o.Recorder.Append(history.Record{Commit: &history.Commit{Type: event, Object: object}})
}

// recordDeletion records the end of an object, as the API server tells of it: as it was
// last, at the version of its deletion.
func (o *Follower) recordDeletion(key string, last history.Object, revision int64) {
	delete(o.latest, key)
	last.Version = history.Version(revision)
	o.Recorder.Append(history.Record{Commit: &history.Commit{Type: history.Deleted, Object: last}})
}

func (o *Follower) advance(revision int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seenUpTo = max(o.seenUpTo, revision)
	close(o.changed)
	o.changed = make(chan struct{})
}

func (o *Follower) gap(format string, args ...any) {
	o.Recorder.Append(history.Record{Gap: &history.Gap{Source: "commits", Detail: fmt.Sprintf(format, args...)}})
}
