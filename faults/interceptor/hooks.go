package interceptor

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// RequestFault decides what a fault does to a request. It returns nil to leave the request
// unchanged.
//
// The interceptor calls it after it has recorded the request and before it forwards the
// request. It calls the registered faults in order, up to the first one that returns an effect.
//
// The interceptor calls a RequestFault from many goroutines, and the request waits until it
// returns. A RequestFault must not change the request or keep a reference to it. It must not
// call its own remove function, because remove waits for it.
type RequestFault func(*history.Request) *RequestEffect

// RequestEffect says what a fault does to a request, such as delaying or refusing it. The
// interceptor applies the fields in their order.
//
// If only Fault is set, the interceptor forwards the request unchanged.
type RequestEffect struct {
	// Fault is the name of the fault type. The record of the response contains it.
	Fault string
	// Delay is the time that the request waits before the interceptor applies the next fields.
	// The delay ends early when the fault is removed.
	Delay time.Duration
	// BeforeForward is called before the interceptor forwards the request. The request waits
	// until it returns. Its ctx is canceled when the subject cancels the request.
	BeforeForward func(ctx context.Context)
	// Refuse is an error that the interceptor sends to the subject. The API server does not
	// receive the request.
	Refuse *Refusal
	// Break says how the interceptor ends the request without a response. The API server does not
	// receive the request.
	Break ConnectionBreak
	// ListAt is the resourceVersion at which the API server answers a list request. 0
	// leaves the request unchanged.
	ListAt history.Version
	// Lose says what the subject receives instead of the API server's response. The API
	// server receives the request. Lose must not be set for a watch.
	Lose *LostResponse
}

// ConnectionBreak says how the interceptor ends a request without a response. The zero value does
// not end the request.
type ConnectionBreak string

// These are the values of [ConnectionBreak].
const (
	// BreakRequest resets the HTTP/2 stream of the request. Other requests on its
	// connection continue.
	BreakRequest ConnectionBreak = "request"
	// BreakConnection resets the TCP connection of the request. This also breaks all other
	// requests and watches on the connection.
	BreakConnection ConnectionBreak = "connection"
)

// LostResponse says what the subject receives instead of a lost response. There are three
// possibilities: the API error in Refuse, half of the response and then a reset (Cut), or
// only a reset.
type LostResponse struct {
	// After is the time from the API server's response until the subject receives the
	// replacement. The wait ends early when the fault is removed.
	After time.Duration
	// Refuse is the API error that the subject receives, or nil.
	Refuse *Refusal
	// Cut is true if the subject receives the first half of the response before the reset.
	Cut bool
	// Break says what the interceptor resets if Refuse is nil.
	Break ConnectionBreak
}

// WatchFault decides what a fault does to a watch event. It returns nil to leave the event
// unchanged.
//
// The interceptor calls every WatchFault when the event arrives from the API server. If several
// faults hold the event, the longest hold applies. The field Held of the event is 0, because
// the interceptor sets it only at the delivery.
//
// The interceptor calls a WatchFault from many goroutines, and the events of the watch wait
// until it returns. A WatchFault must not change stream or event, or keep a reference to them.
// It must not call its own remove function, because remove waits for it.
type WatchFault func(stream *history.Request, event *history.Delivery) *WatchEffect

// WatchEffect says what a fault does to a watch event: drop it, or deliver it later.
type WatchEffect struct {
	// Drop makes the interceptor discard the event if it is a bookmark. The interceptor ignores Drop
	// for other events, because without them the cache of the subject would be wrong. It
	// also ignores Drop for the bookmark that ends the initial events of a streaming list.
	Drop bool
	// Hold is the time from the arrival of the event at the interceptor until its delivery. Later
	// events of the same watch also wait, so that their order is kept. Other watches are
	// not affected.
	Hold time.Duration
}

// hooks is the set of registered faults. Requests read the set without a lock: each change of
// the set stores a new snapshot in current.
type hooks[F any] struct {
	mu      sync.Mutex // held while current is replaced
	current atomic.Pointer[hookSet[F]]
}

// hookSet is an immutable snapshot of the registered faults, in the order of their
// registration.
type hookSet[F any] struct {
	all        []*hook[F]
	superseded chan struct{} // closed when a fault was added or removed
}

// hook is one registered fault. Its removal waits for calls of the fault in progress, so the
// fault does nothing after its removal.
//
// Each call of the fault holds mu for reading, and the removal locks mu for writing.
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

// add registers a fault. The returned function removes the fault, and may be called more
// than once.
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

// change replaces the registered faults by the list that edit returns. edit gets a copy of
// the current list, which it may change.
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

// call calls use with the fault, unless the fault has been removed.
func (h *hook[F]) call(use func(F)) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if !h.removed {
		use(h.fault)
	}
}

// isRemoved reports whether the fault has been removed.
func (h *hook[F]) isRemoved() bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.removed
}
