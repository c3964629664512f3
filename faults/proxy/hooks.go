package proxy

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// RequestFault is asked about every request, after it is recorded and before
// anything is done about it. It answers nil if the request does not concern it.
// The first fault that answers, in the order in which they were added, has the
// request to itself; the ones behind it are not asked.
//
// It is called from many goroutines, must be quick, and must not keep or change
// the request, nor remove itself from within the call.
type RequestFault func(*history.Request) *RequestEffect

// RequestEffect is what a fault does to a request, in the order of the fields. A
// request for which only Fault is set passes as if there were no fault.
type RequestEffect struct {
	// Fault is the fault's name, for the record of the response.
	Fault string
	// Delay keeps the request back before anything else is done about it. It ends
	// early when the fault is removed.
	Delay time.Duration
	// BeforeForward is done before the request goes on, which waits for it. Its ctx ends
	// with the request's.
	BeforeForward func(ctx context.Context)
	// Refuse answers the request in the API server's place. The API server never
	// sees it.
	Refuse *Refusal
	// Break ends the request without an answer. The API server never sees it.
	Break ConnectionBreak
	// ListAt has a list answered by the API server as it was at this version; 0 is
	// as the subject asked.
	ListAt history.Version
	// Lose lets the request do its work and keeps the API server's answer from the
	// subject. It is for requests other than watches.
	Lose *LostResponse
}

// ConnectionBreak is how a request ends without an answer. The zero value breaks nothing.
type ConnectionBreak string

// The ways to break a request off.
const (
	// BreakRequest resets the request's HTTP/2 stream, and nothing else.
	BreakRequest ConnectionBreak = "request"
	// BreakConnection resets the TCP connection, and with it whatever else is under
	// way on it: watches and other requests.
	BreakConnection ConnectionBreak = "connection"
)

// LostResponse is what the subject gets in the place of an answer: the Refusal, or the
// first half of the answer, or else nothing.
type LostResponse struct {
	// After is how long the subject waits for it, from the API server's answer on.
	// It ends early when the fault is removed.
	After  time.Duration
	Refuse *Refusal
	Cut    bool
	// Break is how the exchange ends if there is no Refusal.
	Break ConnectionBreak
}

// WatchFault is asked about every event of every watch stream as it arrives
// from the API server. It answers nil if the event does not concern it. Every
// fault is asked; the longest hold counts. The event's place in the history, and
// how long it was held, are not known yet.
//
// The rules of [RequestFault] apply to it too.
type WatchFault func(stream *history.Request, event *history.Delivery) *WatchEffect

// WatchEffect is what a fault does to a watch event. Further ways to spoil a
// stream become further fields.
type WatchEffect struct {
	// Drop keeps a bookmark from the subject for good. Any other event is handed
	// over all the same, and so is the bookmark that ends initial events: without
	// them the subject would be told what is not so.
	Drop bool
	// Hold is how long the event is kept back, from its arrival on. What arrives
	// behind it on the same stream waits too, so that the order is kept; other
	// streams do not.
	Hold time.Duration
}

// hooks is a set of faults that requests consult without a common lock.
type hooks[F any] struct {
	mu      sync.Mutex // orders changes
	current atomic.Pointer[hookSet[F]]
}

// hookSet is the faults of one moment. It does not change.
type hookSet[F any] struct {
	all        []*hook[F]
	superseded chan struct{} // closed when another set has taken its place
}

// hook is one fault. Its lock lets remove wait for the calls under way, so that
// nothing fires once remove has returned.
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

// add puts a fault behind the others. The function it returns takes it away
// again and may be called more than once.
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

// call hands the fault to use, unless it has been removed.
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
