package proxy

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// RequestFault decides whether a fault applies to a request, and returns its effect or nil.
// The proxy calls it after it has recorded the request and before it forwards the request.
// It calls the faults in the order in which they were added, and the first effect applies;
// it does not call the remaining faults.
//
// A RequestFault is called from many goroutines and must return quickly. It must not retain
// or change the request, and must not call its own remove function.
type RequestFault func(*history.Request) *RequestEffect

// RequestEffect is the effect of a fault on a request. The proxy applies the fields in their
// order. A RequestEffect with only Fault set leaves the request unchanged.
type RequestEffect struct {
	// Fault is the fault's name for the record of the response.
	Fault string
	// Delay postpones everything that follows. It ends early when the fault is removed.
	Delay time.Duration
	// BeforeForward is called before the request is forwarded; the request waits for it. Its
	// ctx ends with the request's.
	BeforeForward func(ctx context.Context)
	// Refuse answers the request with an error. The API server does not receive the request.
	Refuse *Refusal
	// Break ends the request without a response. The API server does not receive the request.
	Break ConnectionBreak
	// ListAt makes the API server answer a list at this resourceVersion. 0 leaves the list
	// unchanged.
	ListAt history.Version
	// Lose forwards the request and withholds the API server's response from the subject. It
	// does not apply to watches.
	Lose *LostResponse
}

// ConnectionBreak is the way in which a request ends without a response. The zero value
// breaks nothing.
type ConnectionBreak string

// The values of [ConnectionBreak].
const (
	// BreakRequest resets the HTTP/2 stream of the request only.
	BreakRequest ConnectionBreak = "request"
	// BreakConnection resets the TCP connection, with all other requests and watches on it.
	BreakConnection ConnectionBreak = "connection"
)

// LostResponse says what the subject receives instead of a lost response. It is an API error
// (Refuse), the first half of the response (Cut) and then a reset, or only a reset.
type LostResponse struct {
	// After is the time from the API server's response to its replacement. It ends early when
	// the fault is removed.
	After  time.Duration
	Refuse *Refusal
	Cut    bool
	// Break is the way in which the exchange ends if Refuse is nil.
	Break ConnectionBreak
}

// WatchFault decides whether a fault applies to a watch event, and returns its effect or
// nil. The proxy calls every WatchFault when the event arrives from the API server; the
// longest hold applies. At that time the event has no sequence number in the history, and
// its Held is 0.
//
// The rules of [RequestFault] about concurrency and retention apply.
type WatchFault func(stream *history.Request, event *history.Delivery) *WatchEffect

// WatchEffect is the effect of a fault on a watch event.
type WatchEffect struct {
	// Drop discards a bookmark. The proxy ignores Drop for any other event and for the
	// bookmark that ends the initial events: without these events the subject's cache would be
	// wrong.
	Drop bool
	// Hold is the time for which the event is held after its arrival. Later events of the same
	// stream wait too, so that their order is kept. Other streams are not affected.
	Hold time.Duration
}

// hooks is the set of registered faults. Requests read it without a lock, because
// every change replaces the whole snapshot.
type hooks[F any] struct {
	mu      sync.Mutex // serializes changes
	current atomic.Pointer[hookSet[F]]
}

// hookSet is an immutable snapshot of the faults.
type hookSet[F any] struct {
	all        []*hook[F]
	superseded chan struct{} // closed when a newer snapshot replaces this one
}

// hook is one fault. Its lock lets remove wait for calls in flight, so that the fault does
// not fire after remove has returned.
type hook[F any] struct {
	fault   F
	mu      sync.RWMutex
	removed bool
}

func newHooks[F any]() *hooks[F] {
	h := &hooks[F]{}
	h.current.Store(&hookSet[F]{superseded: make(chan struct{})})
	return h
}

// add appends a fault. The returned function removes it and may be called more than once.
func (h *hooks[F]) add(fault F) (remove func()) {
	added := &hook[F]{fault: fault}
	h.change(func(all []*hook[F]) []*hook[F] { return append(all, added) })
	return sync.OnceFunc(func() {
		added.mu.Lock()
		added.removed = true
		added.mu.Unlock()
		h.change(func(all []*hook[F]) []*hook[F] {
			return slices.DeleteFunc(all, func(other *hook[F]) bool { return other == added })
		})
	})
}

func (h *hooks[F]) change(edit func([]*hook[F]) []*hook[F]) {
	h.mu.Lock()
	defer h.mu.Unlock()
	old := h.current.Load()
	h.current.Store(&hookSet[F]{
		all:        edit(slices.Clone(old.all)),
		superseded: make(chan struct{}),
	})
	close(old.superseded)
}

// call runs use with the fault, unless the fault has been removed.
func (h *hook[F]) call(use func(F)) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if !h.removed {
		use(h.fault)
	}
}

func (h *hook[F]) isRemoved() bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.removed
}
