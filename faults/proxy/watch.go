package proxy

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

// streamEnd is how a watch stream ended.
type streamEnd struct {
	reason string
	err    error // what broke it; nil if the API server ended it properly
	// expired: the subject is told that it must list anew.
	expired bool
}

// stream carries the events of one watch. A reader takes them from the API
// server as they come; the handler's goroutine hands them on when they are due.
type stream struct {
	*exchange
	in     encoding
	source *bufio.Reader
	queue  *queue
	// released is when the last wait for a held event was over: whatever arrived
	// before it was held until then.
	released time.Time
	// forced is how a fault ends the stream, set before it calls cancel.
	forced atomic.Pointer[streamEnd]
	cancel context.CancelFunc
}

// stream serves the answer to a watch, from its header to its end.
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
	s.open(cancel)
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		s.read(ctx)
	}()
	end := s.deliver(ctx)
	cancel()
	_ = response.Body.Close() // ends a read under way
	<-finished
	end = s.shut(end)
	if end.expired {
		end.err = s.expire()
	}
	x.append(history.Record{WatchClosed: &history.WatchClosed{
		ID: x.record.ID, Subject: x.record.Subject, Resource: x.record.Resource, Reason: end.reason,
	}})
	if end.err != nil {
		x.breakOff(end.err)
	}
}

// read queues what arrives, until the stream ends or ctx does.
func (s *stream) read(ctx context.Context) {
	next, ok := framings[s.in]
	if !ok {
		s.gap(errors.New("a watch stream of an unknown content type"))
		next = nextChunk
	}
	for {
		raw, err := next(s.source, nil)
		arrived := s.proxy.clock.Now()
		if len(raw) > 0 {
			e := &event{raw: raw, arrived: arrived}
			if err == nil && ok {
				s.examine(e)
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
			_ = s.queue.push(ctx, &event{arrived: arrived, end: s.endOf(err)}) // fails only if nobody waits for it
			return
		}
	}
}

// nextChunk takes whatever has arrived: the framing of a stream without frames.
func nextChunk(source *bufio.Reader, buffer []byte) ([]byte, error) {
	if _, err := source.Peek(1); err != nil {
		return buffer, err
	}
	arrived, _ := source.Peek(source.Buffered())
	buffer = append(buffer, arrived...)
	_, err := source.Discard(len(arrived))
	return buffer, err
}

// examine reads an event and asks the faults about it.
func (s *stream) examine(e *event) {
	var err error
	if e.raw, s.target.skewed, err = s.proxy.skew.skewedEvent(s.target.shownTo(s.record.ID), s.in, e.raw); err != nil {
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
	for _, h := range s.proxy.watchFaults.current.Load().all {
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

func (s *stream) endOf(err error) *streamEnd {
	if errors.Is(err, io.EOF) {
		return &streamEnd{reason: "the API server ended it"}
	}
	return &streamEnd{reason: "the connection to the API server broke: " + err.Error(), err: err}
}

// deliver hands events to the subject in their order, each when it is due, and
// returns how the stream ended.
func (s *stream) deliver(ctx context.Context) *streamEnd {
	control := http.NewResponseController(s.writer)
	handing := false // from an event until it is flushed
	defer func() {
		if handing {
			s.wire.handing.RUnlock()
		}
	}()
	for {
		e := s.queue.tryPop()
		if e == nil || s.proxy.clock.Now().Before(e.due()) { // what is written need not wait for it
			err := control.Flush()
			if handing {
				s.wire.handing.RUnlock()
				handing = false
			}
			if err != nil {
				return s.gone()
			}
		}
		var err error
		if e == nil {
			if e, err = s.queue.pop(ctx); err != nil {
				return s.gone()
			}
		}
		if err := s.await(ctx, e); err != nil {
			return s.gone()
		}
		if e.end != nil {
			return e.end
		}
		if !handing {
			s.wire.handing.RLock()
			handing = true
		}
		if s.left() || s.hand(e) != nil {
			return s.gone()
		}
	}
}

// gone is the end of a stream that nobody reads any more.
func (s *stream) gone() *streamEnd {
	if s.proxy.stopping() {
		return &streamEnd{reason: "the proxy stopped"}
	}
	return &streamEnd{reason: "the subject went away"}
}

// await returns when an event is due: its holds are over, or their faults are
// removed. It fails when nobody waits for the event any more.
func (s *stream) await(ctx context.Context, e *event) error {
	waited := false
	for {
		faults := s.proxy.watchFaults.current.Load() // before due, so that no removal is missed
		now := s.proxy.clock.Now()
		left := e.due().Sub(now)
		if left <= 0 {
			if waited {
				s.released = now
			}
			if err := s.request.Context().Err(); err != nil {
				return err // ctx may learn of it later than the body, whose end e may be
			}
			return ctx.Err()
		}
		waited = true
		timer := s.proxy.clock.NewTimer(left)
		select {
		case <-timer.C():
		case <-faults.superseded:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
		timer.Stop()
	}
}

// hand records a delivery and makes it.
func (s *stream) hand(e *event) error {
	if e.delivery != nil {
		e.delivery.Held = max(0, s.released.Sub(e.arrived))
		s.append(history.Record{Delivery: e.delivery})
		switch e.delivery.Type {
		case history.Added, history.Modified:
			s.proxy.kinship.learn(&e.delivery.Object)
		case history.Deleted:
			s.proxy.kinship.forget(&e.delivery.Object)
		}
	}
	_, err := s.writer.Write(e.raw)
	return err
}
