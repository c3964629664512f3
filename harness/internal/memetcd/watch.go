package memetcd

import (
	"context"
	"slices"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// progressInterval is the time after which a watch that has received nothing gets a progress
// notification. It is etcd's default.
const progressInterval = 10 * time.Minute

// watches implements clientv3.Watcher, the interface for watches of an etcd client.
//
// The implementation of package clientv3 cannot be used: it waits for a channel that exists for
// the whole process, so the clock of a bubble of testing/synctest would stand still.
//
// An implementation outside of clientv3 does not see all options. Every event contains the
// previous version of the key, and every idle watch gets progress notifications, as if the
// caller had asked for them. Filters and notifications of the creation are ignored.
type watches struct {
	store *Store
	ctx   context.Context // ends all watches
}

// watcher is one watch. The mutex of the store protects ended; mu protects queue.
type watcher struct {
	owner    *watches
	keys     keyRange
	progress *time.Timer
	ended    bool

	mu      sync.Mutex
	queue   []clientv3.WatchResponse // responses that the caller has not received
	arrived chan struct{}            // receives a token when queue is not empty
}

// Watch opens a watch, which ends with ctx. After a response with an error, its channel is closed.
func (x *watches) Watch(ctx context.Context, key string, options ...clientv3.OpOption) clientv3.WatchChan {
	operation := clientv3.OpGet(key, options...)
	responses := make(chan clientv3.WatchResponse)
	w := &watcher{owner: x, keys: rangeOf(operation.KeyBytes(), operation.RangeBytes()), arrived: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(x.ctx, cancel)
	w.open(operation.Rev())
	go func() {
		defer close(responses)
		defer stop()
		defer cancel()
		defer w.close()
		w.deliver(ctx, responses)
	}()
	return responses
}

// RequestProgress sends a progress notification to all watches of this client.
func (x *watches) RequestProgress(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	x.store.mu.Lock()
	defer x.store.mu.Unlock()
	for _, w := range x.store.watchers {
		if w.owner == x {
			w.notifyProgress()
		}
	}
	return nil
}

// Close does nothing, because the watches end with the context of the client.
func (x *watches) Close() error { return nil }

// open adds the watch to the store, and sends the events since the start revision. If that is 0,
// the watch starts with the next transaction.
func (w *watcher) open(start int64) {
	s := w.owner.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if start > 0 && start < s.compacted {
		w.ended = true
		w.enqueue(clientv3.WatchResponse{Header: *s.header(), CompactRevision: s.compacted, Canceled: true})
		return
	}
	s.watchers = append(s.watchers, w)
	w.progress = time.AfterFunc(progressInterval, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		w.notifyProgress()
	})
	if start > 0 {
		from, _ := slices.BinarySearchFunc(s.log, start, func(e *mvccpb.Event, revision int64) int {
			return int(e.Kv.ModRevision - revision)
		})
		w.send(s.revision, s.log[from:])
	}
}

// close removes the watch from the store.
func (w *watcher) close() {
	s := w.owner.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.ended {
		return
	}
	w.ended = true
	w.progress.Stop()
	s.watchers = slices.DeleteFunc(s.watchers, func(other *watcher) bool { return other == w })
}

// send sends the events for the keys of the watch. revision is the current one. The Store is
// locked.
func (w *watcher) send(revision int64, events []*mvccpb.Event) {
	var matching []*clientv3.Event
	for _, event := range events {
		if w.keys.contains(string(event.Kv.Key)) {
			matching = append(matching, (*clientv3.Event)(event))
		}
	}
	if len(matching) == 0 {
		return
	}
	w.progress.Reset(progressInterval)
	w.enqueue(clientv3.WatchResponse{Header: pb.ResponseHeader{Revision: revision}, Events: matching})
}

// notifyProgress sends a progress notification, which is a response without events. The Store is
// locked.
func (w *watcher) notifyProgress() {
	if w.ended {
		return
	}
	w.progress.Reset(progressInterval)
	w.enqueue(clientv3.WatchResponse{Header: *w.owner.store.header()})
}

// enqueue appends a response to the queue. It never blocks.
func (w *watcher) enqueue(r clientv3.WatchResponse) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = append(w.queue, r)
	select {
	case w.arrived <- struct{}{}:
	default:
	}
}

// take returns all responses of the queue, and empties it.
func (w *watcher) take() []clientv3.WatchResponse {
	w.mu.Lock()
	defer w.mu.Unlock()
	queue := w.queue
	w.queue = nil
	return queue
}

// deliver sends the responses of the queue to a channel. It returns when ctx ends, or after a
// response with an error.
func (w *watcher) deliver(ctx context.Context, to chan<- clientv3.WatchResponse) {
	for {
		for _, response := range w.take() {
			select {
			case to <- response:
			case <-ctx.Done():
				return
			}
			if response.Err() != nil {
				return
			}
		}
		select {
		case <-w.arrived:
		case <-ctx.Done():
			return
		}
	}
}
