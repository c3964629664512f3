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

// WatchEnding is how a fault ends a watch stream.
type WatchEnding string

// The ways in which a watch ends.
const (
	// EndClosed ends it as the API server does after some minutes.
	EndClosed WatchEnding = "closed"
	// EndReset resets its HTTP/2 stream.
	EndReset WatchEnding = "reset"
	// EndDisconnected resets the TCP connection, and with it whatever else is under
	// way on it.
	EndDisconnected WatchEnding = "disconnected"
	// EndExpired ends it with a 410: the API server no longer knows what came
	// behind what the subject has seen, which must list anew.
	EndExpired WatchEnding = "expired"
)

// Endings are all of them.
var Endings = []WatchEnding{EndClosed, EndReset, EndDisconnected, EndExpired}

// EndWatches ends the open watch streams that concern the fault of that name, and
// returns their requests. What is held back on them is not handed over: the
// subject learns of it from its next watch or list. It does not wait for the
// streams to come to their end. The rules of [RequestFault] apply to concerns.
func (p *Proxy) EndWatches(fault string, ending WatchEnding, concerns func(*history.Request) bool) []*history.Request {
	p.openStreams.mu.Lock()
	defer p.openStreams.mu.Unlock()
	var ended []*history.Request
	for s := range p.openStreams.all {
		if concerns(s.record) && s.injectedEnd.CompareAndSwap(nil, newInjectedEnd(fault, ending)) {
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

// openStreams is the watch streams that can be ended.
type openStreams struct {
	mu  sync.Mutex
	all map[*stream]bool
}

// register makes a stream one that can be ended, which cancels its context.
func (s *stream) register(cancel context.CancelFunc) {
	s.cancel = cancel
	streams := &s.proxy.openStreams
	streams.mu.Lock()
	defer streams.mu.Unlock()
	streams.all[s] = true
}

// unregister makes it one that cannot be ended any more, and returns how it ends: as it
// did, unless a fault came first.
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

// sendExpired tells the subject that its watch has become too old.
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
