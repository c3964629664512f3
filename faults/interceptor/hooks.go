package interceptor

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// RequestFault is a function with which a fault decides what happens to a request. For example,
// it returns the effect "refuse with 503". It returns nil to leave the request unchanged.
//
// The interceptor calls the function after it has recorded the request and before it forwards
// the request. It calls the functions of all faults in the order of their registration. It stops
// at the first function that returns an effect.
//
// Many goroutines call a RequestFault concurrently, and the request waits until the RequestFault
// returns. A RequestFault must not change the request or keep a reference to it. A RequestFault
// must not call the function remove that [Interceptor.OnRequest] returned, because remove waits
// for running calls.
type RequestFault func(*history.Request) *RequestEffect

// RequestEffect says what a fault does to a request of the controllers under test, such as delay
// it. The interceptor applies the fields in the order of their declaration.
//
// If only Fault is set, the interceptor forwards the request unchanged.
type RequestEffect struct {
	// Fault is the name of the fault type, such as "api-error". The history record of the
	// response contains this name.
	Fault string
	// Delay is the time that the interceptor waits before it applies the fields below. The wait
	// ends early when the test run heals the fault.
	Delay time.Duration
	// BeforeForward is a function that the interceptor calls before it forwards the request. The
	// request waits until the function returns. The interceptor cancels ctx when the controller
	// under test cancels the request.
	BeforeForward func(ctx context.Context)
	// Refuse is an API error that the interceptor sends to the controller under test, or nil. The
	// API server does not receive a refused request.
	Refuse *Refusal
	// Break says how the interceptor breaks the request without a response. The API server does
	// not receive a broken request. If Break is empty, the interceptor does not break the
	// request.
	Break ConnectionBreak
	// ListAt is the resourceVersion at which the API server answers a list request. If ListAt is
	// 0, the list request is unchanged.
	ListAt history.Version
	// HoldResponse is the time that the interceptor waits after the API server's response, before
	// it delivers the response. The wait ends early when the run heals the fault. HoldResponse
	// must not be set for a watch.
	HoldResponse time.Duration
	// Lose says what the controller under test receives instead of the API server's response; nil
	// keeps the response. The API server receives and processes the request. Lose must not be set
	// for a watch.
	Lose *LostResponse
}

// ConnectionBreak says how the interceptor ends a request without a response. The zero value
// means that the interceptor does not end the request.
type ConnectionBreak string

// These are the ways in which a fault can end a request without a response.
const (
	// BreakRequest resets the HTTP/2 stream of the request. Other requests on the same
	// connection continue.
	BreakRequest ConnectionBreak = "request"
	// BreakConnection resets the TCP connection of the request. The reset also breaks all other
	// requests and watches on the same connection.
	BreakConnection ConnectionBreak = "connection"
)

// LostResponse says what the subject (the controllers under test) receives instead of a response
// that a fault discards. If Refuse is set, the subject receives this API error. If Cut is set,
// the subject receives half of the response and then a reset. Otherwise the subject receives
// only a reset.
type LostResponse struct {
	// After is the time that the interceptor waits after the API server's response. It then sends
	// the replacement to the controller under test. The wait ends early when the test run heals
	// the fault.
	After time.Duration
	// Refuse is the API error that the controller under test receives. If Refuse is nil, the
	// interceptor resets the stream or the connection.
	Refuse *Refusal
	// Cut is true if the controller under test receives the first half of the response before the
	// reset.
	Cut bool
	// Break says whether the interceptor resets the HTTP/2 stream or the whole connection. It
	// has no effect if Refuse is set.
	Break ConnectionBreak
}

// WatchFault is a function with which a fault decides what happens to a watch event. For example,
// it returns the effect "hold for 5 s". It returns nil to leave the event unchanged. The argument
// stream is the watch request.
//
// The interceptor calls every WatchFault when the event arrives from the API server. If several
// faults hold the event, the longest hold applies. The field Held of the event is 0, because the
// interceptor sets Held only at the delivery.
//
// Many goroutines call a WatchFault concurrently, and the events of the watch wait until the
// WatchFault returns. A WatchFault must not change stream or event, or keep a reference to them.
// A WatchFault must not call the function remove that [Interceptor.OnWatchEvent] returned,
// because remove waits for running calls.
type WatchFault func(stream *history.Request, event *history.Delivery) *WatchEffect

// WatchEffect says what a fault does to a watch event for the controllers under test. The fault
// can drop the event or delay its delivery.
type WatchEffect struct {
	// Drop makes the interceptor discard the event if the event is a bookmark. Other events are
	// never dropped, because the tested controller's cache would then be wrong. The interceptor
	// also keeps the bookmark that ends the initial events of a streaming list.
	Drop bool
	// Hold is the time from the event's arrival at the interceptor until its delivery. Later
	// events of the same watch also wait, so that the order of the events is kept. Other watches
	// are not affected.
	Hold time.Duration
}

// hooks contains the registered faults of one kind: those for requests or those for watch
// events. Requests read the field current without a lock. To add or remove a fault, hooks stores
// a new snapshot in current.
type hooks[F any] struct {
	mu      sync.Mutex // locked while the field current is replaced
	current atomic.Pointer[hookSet[F]]
}

// hookSet is an immutable snapshot of the registered faults, in the order of their
// registration.
type hookSet[F any] struct {
	all        []*hook[F]
	superseded chan struct{} // closed when a fault is added or removed and a newer snapshot replaces this one
}

// hook is one registered fault. Removing a hook waits until all running calls of the fault's
// function have returned. The fault therefore does nothing after its removal.
//
// Each call of the function locks mu for reading, and the removal locks mu for writing.
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

// add registers a fault's function, which the interceptor calls from now on. The function remove
// ends the registration and may be called more than once.
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

// change replaces the list of registered faults. The argument edit is a callback that gets a copy
// of the current list, and returns the new list. It may change the copy.
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

// call passes the fault's function, a RequestFault or WatchFault, to the callback use, which calls
// the function. A removal of the fault waits until the callback has returned. If the fault has
// already been removed, call does nothing.
func (h *hook[F]) call(use func(F)) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if !h.removed {
		use(h.fault)
	}
}

// isRemoved reports whether the fault has been removed, because the test run healed it. A delay of
// this fault then ends early.
func (h *hook[F]) isRemoved() bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.removed
}
