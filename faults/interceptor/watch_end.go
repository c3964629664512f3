package interceptor

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"golang.org/x/net/http2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// WatchEnding says how a fault ends a watch of the controllers under test.
type WatchEnding string

// These are the ways in which a fault can end a watch of the controllers under test.
const (
	// EndClosed ends the stream normally, as the API server does after its watch timeout.
	EndClosed WatchEnding = "closed"
	// EndReset resets the HTTP/2 stream of the watch. Other requests on the same connection
	// continue.
	EndReset WatchEnding = "reset"
	// EndDisconnected resets the TCP connection of the watch. The reset also breaks all other
	// requests and watches on the same connection.
	EndDisconnected WatchEnding = "disconnected"
	// EndExpired sends the controller under test a 410 (Expired) event and then ends the stream.
	// The controller must then list again.
	EndExpired WatchEnding = "expired"
)

// Endings contains every value of [WatchEnding]. These are also the permitted values of the
// parameter "how" of a watch-end fault.
var Endings = []WatchEnding{EndClosed, EndReset, EndDisconnected, EndExpired}

// EndWatches ends the open watches whose requests satisfy a condition, and returns these requests.
// The argument matches is a callback that reports whether a watch request satisfies the condition.
// EndWatches does not wait until the streams have ended.
//
// The interceptor discards the events that faults hold in these watches. The controller under test
// receives the missed changes with its next watch or list. The argument fault is the name of the
// fault type, such as "watch-end", for the history. The callback must not change the request or
// keep a reference to it.
func (i *Interceptor) EndWatches(fault string, ending WatchEnding, matches func(*history.Request) bool) []*history.Request {
	i.openStreams.mu.Lock()
	defer i.openStreams.mu.Unlock()
	var ended []*history.Request
	for s := range i.openStreams.all {
		if matches(s.record) && s.injectedEnd.CompareAndSwap(nil, newInjectedEnd(fault, ending)) {
			s.cancel()
			ended = append(ended, s.record)
		}
	}
	return ended
}

// newInjectedEnd returns a streamEnd for a watch that a fault ends. The argument fault is the name
// of the fault type, which the history record contains.
func newInjectedEnd(fault string, ending WatchEnding) *streamEnd {
	end := &streamEnd{reason: fmt.Sprintf("%s by a fault (%s)", ending, fault)}
	switch ending {
	case EndReset:
		end.err = http2.StreamError{Code: http2.ErrCodeInternal, Cause: errInjectedBreak}
	case EndDisconnected:
		end.err, end.broken = errInjectedBreak, true
	case EndExpired:
		end.expired = true
	}
	return end
}

// openStreams contains the open watches of all replicas, so that a fault can end them.
type openStreams struct {
	mu  sync.Mutex
	all map[*stream]bool
}

// register adds the stream to the set of open watches. A fault ends the watch by calling the
// argument cancel, which register stores in s.cancel.
func (s *stream) register(cancel context.CancelFunc) {
	s.cancel = cancel
	streams := &s.openStreams
	streams.mu.Lock()
	defer streams.mu.Unlock()
	streams.all[s] = true
}

// unregister removes the stream from the set of open watches, and returns how the watch ended.
//
// If a fault ended the watch, the result is the end that the fault has set. Otherwise the result is
// the argument end, which says how the stream itself ended. The result is also the argument end if
// the watch ended before the fault could end it. For example, the connection broke, or the
// controller under test closed the watch.
func (s *stream) unregister(end *streamEnd) *streamEnd {
	streams := &s.openStreams
	streams.mu.Lock()
	delete(streams.all, s)
	streams.mu.Unlock()
	if forced := s.injectedEnd.Load(); forced != nil && end.err == nil && s.request.Context().Err() == nil {
		return forced
	}
	return end
}

// sendExpired records and sends the controller under test a watch event of type ERROR with status
// 410 (Expired).
func (s *stream) sendExpired() error {
	status := &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure,
		Message:  "too old resource version (injected fault)",
		Reason:   metav1.StatusReasonExpired,
		Code:     http.StatusGone,
	}
	raw, err := encodeEvent(s.in, history.Error, status)
	if err != nil {
		return err
	}
	s.append(history.Record{Delivery: &history.Delivery{
		ID: s.record.ID, Subject: s.record.Subject, Resource: s.record.Resource, Type: history.Error, Bytes: len(raw),
	}})
	if _, err := s.writer.Write(raw); err != nil {
		return err
	}
	return http.NewResponseController(s.writer).Flush()
}
