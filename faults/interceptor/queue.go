package interceptor

import (
	"context"
	"sync"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// queueBytesMax is the maximum total size of the events in one watch's queue. If the queue is
// full, the interceptor stops reading the watch from the API server. The API server then ends
// the watch, as it does for any slow client.
const queueBytesMax = 64 << 20

// event is one watch event from its arrival at the interceptor until its delivery to the
// controller under test.
type event struct {
	raw []byte // bytes of the event in the stream; for protobuf, they begin with the event's length
	// delivery is the history record of the event. It is nil if the interceptor could not decode
	// raw.
	delivery *history.Delivery
	arrived  time.Time
	holds    []hold // one element for each fault that holds the event
	dropped  bool   // true if a fault drops the event, so it is not delivered
	// end says how the stream ended. Only the last element of a queue has it. This element
	// contains no event: the fields raw and delivery are empty.
	end *streamEnd
}

// hold says until when one fault delays the delivery of a watch event.
type hold struct {
	hook  *hook[WatchFault]
	until time.Time
}

// due returns the time before which the interceptor must not deliver the event to the controller
// under test. If several faults hold the event, it is the end of the longest hold. It is the zero
// time if no fault holds the event. Healed faults do not count.
func (e *event) due() time.Time {
	var due time.Time
	for _, h := range e.holds {
		if h.until.After(due) && !h.hook.isRemoved() {
			due = h.until
		}
	}
	return due
}

// queue contains the events of one watch that have arrived and are not yet delivered. One
// goroutine pushes the events, and another goroutine pops them.
type queue struct {
	mu       sync.Mutex
	events   []*event
	bytes    int           // total size of the queued events, in bytes
	pushed   chan struct{} // receives a value after an event was pushed
	popped   chan struct{} // receives a value after an event was popped
	bytesMax int           // maximum of the field bytes
}

// newQueue returns an empty queue. The argument bytesMax is the maximum total size of its events.
func newQueue(bytesMax int) *queue {
	return &queue{
		pushed:   make(chan struct{}, 1),
		popped:   make(chan struct{}, 1),
		bytesMax: bytesMax,
	}
}

// push appends an event to the queue. While the queue is full, push waits; it returns an error
// if ctx is done first. An empty queue accepts an event of any size.
func (q *queue) push(ctx context.Context, e *event) error {
	for !q.tryPush(e) {
		select {
		case <-q.popped:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	signal(q.pushed)
	return nil
}

// tryPush appends an event unless the queue is full. It returns false if the queue is full.
func (q *queue) tryPush(e *event) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.events) > 0 && q.bytes+len(e.raw) > q.bytesMax {
		return false
	}
	q.events = append(q.events, e)
	q.bytes += len(e.raw)
	return true
}

// tryPop removes and returns the first event. It returns nil if the queue is empty.
func (q *queue) tryPop() *event {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.events) == 0 {
		return nil
	}
	e := q.events[0]
	q.events[0] = nil
	q.events = q.events[1:]
	q.bytes -= len(e.raw)
	signal(q.popped)
	return e
}

// pop removes and returns the first event. While the queue is empty, pop waits; it returns an
// error if ctx is done first.
func (q *queue) pop(ctx context.Context) (*event, error) {
	for {
		if e := q.tryPop(); e != nil {
			return e, nil
		}
		select {
		case <-q.pushed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// signal puts a token into a channel of capacity 1, unless the channel already contains one. The
// token wakes a waiting push or pop.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
