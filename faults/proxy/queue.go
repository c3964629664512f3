package proxy

import (
	"context"
	"sync"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// queueBytesMax limits the events that one watch stream holds. A full stream reads no more
// from the API server. The API server then ends the watch, as it does for any slow client,
// so memory stays bounded and the behavior stays realistic.
const queueBytesMax = 64 << 20

// event is one event of a watch stream between its arrival and its delivery.
type event struct {
	raw []byte // the bytes as received
	// delivery is the record of the event, nil if raw could not be decoded.
	delivery *history.Delivery
	arrived  time.Time
	holds    []hold
	dropped  bool // never delivered
	// end, if set, marks the end of the stream; raw is empty.
	end *streamEnd
}

// hold is a limit, set by one fault, before which an event is not delivered.
type hold struct {
	hook  *hook[WatchFault]
	until time.Time
}

// due returns the time from which the event may be delivered. This is the end of the
// longest hold still in force, or the zero time.
func (e *event) due() time.Time {
	var due time.Time
	for _, h := range e.holds {
		if h.until.After(due) && !h.hook.isRemoved() {
			due = h.until
		}
	}
	return due
}

// queue holds the events of one stream between its reader and its writer.
type queue struct {
	mu       sync.Mutex
	events   []*event
	bytes    int
	pushed   chan struct{} // receives a token after a push
	popped   chan struct{} // receives a token after a pop
	bytesMax int
}

func newQueue(bytesMax int) *queue {
	return &queue{
		pushed:   make(chan struct{}, 1),
		popped:   make(chan struct{}, 1),
		bytesMax: bytesMax,
	}
}

// push appends an event and waits while the queue is full. An empty queue accepts an event
// of any size.
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

// tryPop removes and returns the first event, or returns nil if the queue is empty.
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

// pop removes and returns the first event. It waits while the queue is empty.
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

// signal sends a token unless one is pending.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
