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

// progressInterval is the time without an event after which a watch receives a progress
// notification. It is etcd's default.
const progressInterval = 10 * time.Minute

// watches implements clientv3.Watcher, the interface for watches of an etcd client.
//
// clientv3's own implementation waits for a channel that exists for the whole process. In a bubble
// of testing/synctest, such a wait stops the virtual clock. Therefore this package cannot use that
// implementation.
//
// An implementation outside of clientv3 cannot read all watch options. Every event therefore
// contains the key's previous version, as if the caller had asked for this version. Likewise, every
// watch without events receives progress notifications. Filters and notifications of the watch's
// creation are ignored.
type watches struct {
	store *Store
	ctx   context.Context // the client's context, with which all watches end
}

// watcher is one open watch. The mutex of the Store protects the field ended, and mu protects
// the field queue.
type watcher struct {
	owner    *watches
	keys     keyRange
	progress *time.Timer
	ended    bool

	mu      sync.Mutex
	queue   []clientv3.WatchResponse // responses that the caller has not received
	arrived chan struct{}            // receives a token when queue is not empty
}

// Watch opens a watch, which ends with ctx. After a response with an error, Watch's goroutine
// closes the returned channel.
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
		if x.store.AwaitRunning(ctx) == nil {
			w.deliver(ctx, responses)
		}
	}()
	return responses
}

// RequestProgress sends a progress notification to all watches of this client. The notification
// contains the current revision.
func (x *watches) RequestProgress(ctx context.Context) error {
	if err := x.store.lock(ctx); err != nil {
		return err
	}
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

// open adds the watch to the Store, and sends its events. The argument start is the revision of the
// first event; 0 means the revision of the next transaction. If the revision start is compacted,
// open sends an error instead and adds no watch.
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

// close removes the watch from the Store and stops its timer.
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

// send sends those of the given events whose key belongs to the watch. The argument revision is the
// current revision of the Store. The caller holds the Store's mutex.
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

// notifyProgress sends the watch a progress notification, which is a response without events.
// The caller holds the Store's mutex.
func (w *watcher) notifyProgress() {
	if w.ended || w.owner.store.resumed != nil {
		return
	}
	w.progress.Reset(progressInterval)
	w.enqueue(clientv3.WatchResponse{Header: *w.owner.store.header()})
}

// enqueue appends a response to the watch's queue, from which the method deliver sends it to the
// client. It never blocks.
func (w *watcher) enqueue(r clientv3.WatchResponse) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = append(w.queue, r)
	select {
	case w.arrived <- struct{}{}:
	default:
	}
}

// take removes all responses from the watch's queue, and returns them in order.
func (w *watcher) take() []clientv3.WatchResponse {
	w.mu.Lock()
	defer w.mu.Unlock()
	queue := w.queue
	w.queue = nil
	return queue
}

// deliver sends the responses in the watch's queue to a channel. It returns when ctx ends, or
// after a response with an error.
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
