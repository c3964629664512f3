package proxy

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"golang.org/x/net/http2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// WatchEnding is the way in which a fault ends a watch stream.
type WatchEnding string

// The values of [WatchEnding].
const (
	// EndClosed ends the stream normally, as the API server does after its watch timeout.
	EndClosed WatchEnding = "closed"
	// EndReset resets the HTTP/2 stream of the watch.
	EndReset WatchEnding = "reset"
	// EndDisconnected resets the TCP connection, with all other requests and watches on it.
	EndDisconnected WatchEnding = "disconnected"
	// EndExpired sends a 410 (Expired) and ends the stream. The subject must list again.
	EndExpired WatchEnding = "expired"
)

// Endings contains every [WatchEnding].
var Endings = []WatchEnding{EndClosed, EndReset, EndDisconnected, EndExpired}

// EndWatches ends the open watches for which matches returns true, and returns their
// requests. The subject does not receive the events that are held on them; it learns of the
// changes from its next watch or list. EndWatches does not wait until the streams have
// ended. The record of the end contains the name of the fault. The rules of [RequestFault]
// apply to matches.
func (p *Proxy) EndWatches(fault string, ending WatchEnding, matches func(*history.Request) bool) []*history.Request {
	p.openStreams.mu.Lock()
	defer p.openStreams.mu.Unlock()
	var ended []*history.Request
	for s := range p.openStreams.all {
		if matches(s.record) && s.injectedEnd.CompareAndSwap(nil, newInjectedEnd(fault, ending)) {
			s.cancel()
			ended = append(ended, s.record)
		}
	}
	return ended
}

func newInjectedEnd(fault string, ending WatchEnding) *streamEnd {
	end := &streamEnd{reason: fmt.Sprintf("%s by a fault (%s)", ending, fault)}
	switch ending {
	case EndReset:
		end.err = http2.StreamError{Code: http2.ErrCodeInternal, Cause: errInjectedBreak}
	case EndDisconnected:
		end.err = errInjectedBreak
	case EndExpired:
		end.expired = true
	}
	return end
}

// openStreams is the set of watch streams that a fault can end.
type openStreams struct {
	mu  sync.Mutex
	all map[*stream]bool
}

// register adds the stream to the set, so that a fault can end the stream by calling
// cancel.
func (s *stream) register(cancel context.CancelFunc) {
	s.cancel = cancel
	streams := &s.proxy.openStreams
	streams.mu.Lock()
	defer streams.mu.Unlock()
	streams.all[s] = true
}

// unregister removes the stream from the set and returns how the stream ended. If a
// fault injected an end, it returns this end. Otherwise it returns its argument.
func (s *stream) unregister(end *streamEnd) *streamEnd {
	streams := &s.proxy.openStreams
	streams.mu.Lock()
	delete(streams.all, s)
	streams.mu.Unlock()
	if forced := s.injectedEnd.Load(); forced != nil && end.err == nil && s.request.Context().Err() == nil {
		return forced
	}
	return end
}

// sendExpired sends the subject a watch event of type ERROR with a 410.
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
