package proxy

import (
	"context"
	"sync"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// queueBytesMax bounds what one watch stream may hold back. A stream that is
// full takes no more from the API server, which then ends it as it does with any
// client that does not read: memory stays bounded, and what the subject sees is
// still a thing that happens.
const queueBytesMax = 64 << 20

// event is a piece of a watch stream between its arrival and its delivery.
type event struct {
	raw []byte // as it was received
	// delivery is its record, nil if raw is no event that could be read.
	delivery *history.Delivery
	arrived  time.Time
	holds    []hold
	dropped  bool // it is never delivered
	// end, if set, says that the stream ends here and how; raw is empty.
	end *streamEnd
}

// hold is one fault's wish to keep an event back.
type hold struct {
	hook  *hook[WatchFault]
	until time.Time
}

// due is when the last of the holds still in force ends; zero if none is.
func (e *event) due() time.Time {
	var due time.Time
	for _, h := range e.holds {
		if h.until.After(due) && !h.hook.isRemoved() {
			due = h.until
		}
	}
	return due
}

// queue is the events of one stream, from its one reader to its one writer.
type queue struct {
	mu       sync.Mutex
	events   []*event
	bytes    int
	pushed   chan struct{} // has a token after a push
	popped   chan struct{} // has a token after a pop
	bytesMax int
}

func newQueue(bytesMax int) *queue {
	return &queue{
		pushed:   make(chan struct{}, 1),
		popped:   make(chan struct{}, 1),
		bytesMax: bytesMax,
	}
}

// push waits while the queue is full. An event larger than the whole queue is
// let in when it is empty.
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

// tryPop returns nil if the queue is empty.
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

// pop waits for an event.
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

// signal leaves a token, unless one is there already.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
