package interceptor

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// streamEnd describes how a watch stream ended. Its reason, such as "the API server ended the
// watch", appears in the history.
type streamEnd struct {
	reason string
	err    error // error that broke the stream; nil if the watch ended normally
	broken bool  // true if a fault broke the connection of the controller under test
	// expired makes the interceptor send the controller under test a 410 (Expired) event, after
	// which the controller must list again.
	expired bool
}

// stream forwards the events of one watch from the API server to the controller under test. A
// fault may hold an event, which delays the event's delivery.
//
// A reader goroutine puts each event into a queue when the event arrives. The goroutine of the
// HTTP handler delivers the event as soon as no fault holds it.
type stream struct {
	*exchange
	in     encoding // encoding of the watch events, such as protobuf
	source *bufio.Reader
	queue  *queue
	// lastRelease is the latest time at which a held event was delivered. An event that arrived
	// before lastRelease waited in the queue behind the held event. Its delivery was therefore
	// late too, and the history says so.
	lastRelease time.Time
	// injectedEnd says how a fault ended the watch, or is nil. The fault sets injectedEnd before it
	// calls stream.cancel, so that the stream's goroutine sees the value.
	injectedEnd atomic.Pointer[streamEnd]
	cancel      context.CancelFunc
}

// stream forwards the response to a watch request, from the response headers to the end of the
// watch. It records each delivery and the end of the watch.
func (x *exchange) stream(response *http.Response) {
	s := &stream{
		exchange: x,
		in:       encodingOf(response.Header.Get("Content-Type")),
		source:   bufio.NewReaderSize(response.Body, 32<<10),
		queue:    newQueue(queueBytesMax),
	}
	x.append(history.Record{Response: &history.Response{
		ID: x.record.ID, Code: response.StatusCode, ServerCode: response.StatusCode, Reached: true, Fault: x.effect.Fault,
	}})
	copyHeader(x.writer.Header(), response.Header)
	x.writer.WriteHeader(response.StatusCode)

	ctx, cancel := context.WithCancel(x.request.Context())
	s.register(cancel)
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		s.readEvents(ctx)
	}()
	end := s.deliverEvents(ctx)
	cancel()
	_ = response.Body.Close() // ends a blocked read
	<-finished
	end = s.unregister(end)
	if end.expired {
		end.err = s.sendExpired()
	}
	x.append(history.Record{WatchClosed: &history.WatchClosed{
		ID: x.record.ID, Subject: x.record.Subject, Resource: x.record.Resource, Reason: end.reason, Broken: end.broken,
	}})
	if end.err != nil {
		x.abort(end.err)
	}
}

// readEvents reads events from the API server and puts them into the queue. It returns when
// the stream ends or ctx is canceled.
func (s *stream) readEvents(ctx context.Context) {
	next, ok := framings[s.in]
	if !ok {
		s.gap(errors.New("the content type of the watch stream is neither JSON nor protobuf"))
		next = nextChunk
	}
	for {
		raw, err := next(s.source, nil)
		arrived := s.clock.Now()
		if len(raw) > 0 {
			e := &event{raw: raw, arrived: arrived}
			if err == nil && ok {
				s.inspect(e)
			}
			if e.dropped {
				continue
			}
			if s.queue.push(ctx, e) != nil {
				return
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, errNoFrame):
			s.gap(err)
			next, ok = nextChunk, false
		default:
			_ = s.queue.push(ctx, &event{arrived: arrived, end: s.endOf(err)}) // push fails only if the handler has returned
			return
		}
	}
}

// nextChunk reads all bytes that have arrived, and appends them to the argument buffer. If the
// interceptor cannot parse a stream, the method readEvents uses nextChunk in place of a nextFrame
// function.
func nextChunk(source *bufio.Reader, buffer []byte) ([]byte, error) {
	if _, err := source.Peek(1); err != nil {
		return buffer, err
	}
	arrived, _ := source.Peek(source.Buffered())
	buffer = append(buffer, arrived...)
	_, err := source.Discard(len(arrived))
	return buffer, err
}

// inspect decodes an event and asks the registered faults whether to hold or drop the event. It
// stores the holds and drops in the event. If a clock-skew fault is active, inspect also shifts
// the event's timestamps.
func (s *stream) inspect(e *event) {
	var err error
	if e.raw, s.target.skewed, err = s.skew.skewEvent(s.target.requestRef(s.record.ID), s.in, e.raw); err != nil {
		s.gap(err)
		return
	}
	delivery, err := s.target.readEvent(s.in, e.raw)
	if err != nil {
		s.gap(err)
		return
	}
	delivery.ID = s.record.ID
	delivery.Subject = s.record.Subject
	delivery.Bytes = len(e.raw)
	e.delivery = delivery
	for _, h := range s.watchFaults.current.Load().all {
		h.call(func(fault WatchFault) {
			effect := fault(s.record, delivery)
			if effect == nil {
				return
			}
			if effect.Hold > 0 {
				e.holds = append(e.holds, hold{hook: h, until: e.arrived.Add(effect.Hold)})
			}
			if effect.Drop && delivery.Type == history.Bookmark && !delivery.InitialEventsEnd {
				e.dropped = true
			}
		})
	}
}

// endOf returns a description of how the API server's stream ended. err is the error of the last
// read. It is io.EOF if the API server ended the watch. Otherwise the connection broke.
func (s *stream) endOf(err error) *streamEnd {
	if errors.Is(err, io.EOF) {
		return &streamEnd{reason: "the API server ended the watch"}
	}
	return &streamEnd{reason: "the connection to the API server broke: " + err.Error(), err: err}
}

// deliverEvents delivers the queued events in order. Before each event, it waits until no fault
// holds the event. It returns a description of how the stream ended.
func (s *stream) deliverEvents(ctx context.Context) *streamEnd {
	control := http.NewResponseController(s.writer)
	delivering := false // true between BeginDelivery and EndDelivery: from the record of an event until its flush
	defer func() {
		if delivering {
			s.conn.EndDelivery()
		}
	}()
	flush := func() error { // makes the subject receive the earlier events before a wait
		if delivering {
			defer s.conn.EndDelivery()
			delivering = false
		}
		return control.Flush()
	}
	for {
		e := s.queue.tryPop()
		if (e == nil || s.clock.Now().Before(e.due())) && flush() != nil {
			return s.subjectGoneEnd()
		}
		var err error
		if e == nil {
			if e, err = s.queue.pop(ctx); err != nil {
				return s.subjectGoneEnd()
			}
		}
		if err := s.waitUntilDue(ctx, e); err != nil {
			return s.subjectGoneEnd()
		}
		if e.end != nil {
			return e.end
		}
		if s.ordersMessages() && (flush() != nil || s.awaitEventTurn(ctx, e) != nil) {
			return s.subjectGoneEnd()
		}
		if !delivering {
			s.conn.BeginDelivery()
			delivering = true
		}
		if s.subjectGone() || s.deliverEvent(e) != nil {
			return s.subjectGoneEnd()
		}
	}
}

// subjectGoneEnd returns a streamEnd for a watch that the controller under test closed, or that
// the stopping transport broke.
func (s *stream) subjectGoneEnd() *streamEnd {
	if s.route.Stopping() {
		return &streamEnd{reason: "the proxy stopped"}
	}
	return &streamEnd{reason: "the subject closed the watch", broken: s.conn.Broken()}
}

// waitUntilDue waits until no fault holds the event. A hold ends when its time is over or when its
// fault is removed. waitUntilDue returns an error if the controller under test or a fault ends the
// watch, or if the interceptor stops.
func (s *stream) waitUntilDue(ctx context.Context, e *event) error {
	waited := false
	for {
		// Load the registered faults before the call of due. If a fault is removed after that call,
		// its removal closes faults.superseded.
		faults := s.watchFaults.current.Load()
		now := s.clock.Now()
		left := e.due().Sub(now)
		if left <= 0 {
			if waited {
				s.lastRelease = now
			}
			// If the controller under test closed the watch, the read from the API server may fail
			// before ctx is canceled. The event e then contains only this failure.
			if err := s.request.Context().Err(); err != nil {
				return err
			}
			return ctx.Err()
		}
		waited = true
		if err := s.hold(ctx, left, faults.superseded); err != nil {
			return err
		}
	}
}

// hold waits for the time d, or until the registered faults have changed. It returns an error if ctx
// ends first. Meanwhile, the event counts as held.
func (s *stream) hold(ctx context.Context, d time.Duration, changed <-chan struct{}) error {
	s.held.Add(1)
	defer s.held.Add(-1)
	timer := s.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-changed:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// awaitEventTurn waits until the registered faults let an event pass. It returns an error if the
// controller under test or a fault ends the watch.
func (s *stream) awaitEventTurn(ctx context.Context, e *event) error {
	before := s.clock.Now()
	err := s.awaitTurn(ctx, Message{Part: EventMessage, Request: s.record, Event: e.delivery})
	if now := s.clock.Now(); now.Sub(before) >= time.Millisecond { // a fault made the event wait
		s.lastRelease = now
	}
	return err
}

// deliverEvent records an event in the history and then writes it to the controller under test.
func (s *stream) deliverEvent(e *event) error {
	if e.delivery != nil {
		e.delivery.Held = max(0, s.lastRelease.Sub(e.arrived))
		s.append(history.Record{Delivery: e.delivery})
		switch e.delivery.Type {
		case history.Added, history.Modified:
			s.owners.set(&e.delivery.Object)
		case history.Deleted:
			s.owners.remove(&e.delivery.Object)
		}
	}
	_, err := s.writer.Write(e.raw)
	return err
}
