// Package interceptor decides what happens to each request of the subject, and records it.
// The subject is the controllers under test. The package records every request of the
// subject, and every response and watch event that the subject receives. It also applies the
// effects of faults to requests, responses and watch events.
//
// The interceptor does not carry requests. A transport does: package proxy on sockets, for a
// subject in processes of its own, and package inprocess by function calls, for a subject in
// this process. The transport passes each request to [Interceptor.Serve]. The interceptor
// sends it to the API server with the http.RoundTripper that the transport provides.
//
// Without a fault the interceptor is transparent. It forwards responses and watch events byte
// for byte, forwards a stream reset as a stream reset, and breaks the subject's connection if
// the API server is down. It forwards the subject's credentials and never records them.
// Responses are not compressed.
//
// The interceptor records a request before it forwards the request. It records a response or
// a watch event before it delivers the response or event to the subject. If it cannot decode
// a body or an event, it forwards the bytes unchanged and records a gap.
//
// # Files
//
// The faults in other packages decide which requests and watch events the interceptor
// changes. Every request and every watch event passes three steps:
//
//  1. Match. A fault in another package registers a [RequestFault] or [WatchFault] with
//     [Interceptor.OnRequest] or [Interceptor.OnWatchEvent]. The interceptor calls it and
//     gets an effect or nil. hooks.go stores the faults; exchange.matchFault calls them for
//     requests, and stream.inspect calls them for events. request_target.go parses verb,
//     resource and name from the URL. owner_index.go finds the owner of an object.
//  2. Effect. [RequestEffect] and [WatchEffect] describe the effects; their fields are in the
//     order in which the interceptor applies them. exchange.serve applies the effects to a
//     request; inject.go and refuse.go implement them. stream.deliverEvents and queue.go
//     hold watch events. [Interceptor.EndWatches] (watch_end.go) and [Interceptor.SkewClock]
//     (skew.go) act without a match.
//  3. Record. exchange.go appends requests and responses to the history. watch.go appends
//     deliveries and the ends of watches. decode.go converts bodies to history objects, and
//     frames.go splits watch streams into events. The fault itself records that it fired,
//     with faults.Reporter.
//
// To add an effect, add a field to [RequestEffect] or [WatchEffect]. Apply the effect in
// exchange.serve or stream.inspect, in the order of the fields. Record it in the response or
// delivery.
package interceptor

import (
	"net/http"
	"net/url"
	"sync/atomic"

	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Recorder stores the records of the history. [history.Recorder] implements it.
type Recorder interface {
	Append(history.Record)
}

// Interceptor applies the effects of faults to the requests of all replicas of the subject,
// and records the requests. [New] creates it.
type Interceptor struct {
	recorder      Recorder
	clock         clock.WithTicker // measures delays and holds
	requestFaults *hooks[RequestFault]
	watchFaults   *hooks[WatchFault]
	lastID        atomic.Uint64 // ID of the newest request; the first ID is 1
	openStreams   openStreams
	owners        *ownerIndex
	skew          skewedClock
}

// New returns an interceptor without faults. It appends its records to the recorder, and
// measures delays and holds with the clock.
func New(recorder Recorder, clock clock.WithTicker) *Interceptor {
	return &Interceptor{
		recorder:      recorder,
		clock:         clock,
		requestFaults: newHooks[RequestFault](),
		watchFaults:   newHooks[WatchFault](),
		openStreams:   openStreams{all: map[*stream]bool{}},
		owners:        newOwnerIndex(),
	}
}

// Route says for which replica a transport carries requests, and how they reach the API
// server.
type Route struct {
	// Subject is the name of the replica, such as "subject-0". The history contains the
	// requests under this name.
	Subject string
	// Target has the scheme and the host of the API server.
	Target *url.URL
	// Upstream sends a request to the API server. When it has a connection to the API
	// server, it calls GotConn of the httptrace.ClientTrace in the context of the request.
	// An http2.StreamError of Upstream breaks only the request, and any other error breaks
	// the connection of the subject.
	Upstream http.RoundTripper
	// Stopping reports whether the transport breaks requests because it is being stopped.
	Stopping func() bool
}

// Connection is the connection on which a request of the subject arrived. Several requests
// can share it.
type Connection interface {
	// BeginDelivery prevents a reset of the connection until EndDelivery. The interceptor
	// calls it before it records a response or event, and EndDelivery after it has written
	// the response or event. Otherwise the history could contain responses that the subject
	// did not receive. Several deliveries can be in progress.
	BeginDelivery()
	EndDelivery()
	// Broken reports whether the connection was reset.
	Broken() bool
	// Reset breaks the connection with all requests on it. It waits for deliveries in
	// progress. The caller must not hold one.
	Reset()
}

// Serve processes one request of the subject until its response is complete.
//
// If the subject receives no complete response, Serve panics with http.ErrAbortHandler, as
// handlers of net/http do. The transport must then break the response.
func (i *Interceptor) Serve(route *Route, connection Connection, w http.ResponseWriter, r *http.Request) {
	x := &exchange{Interceptor: i, route: route, conn: connection, writer: w, request: r}
	x.serve()
}

// OnRequest registers a fault. The interceptor calls the fault for every request from now on.
// After remove has returned, the interceptor does not call the fault again.
func (i *Interceptor) OnRequest(fault RequestFault) (remove func()) {
	return i.requestFaults.add(fault)
}

// OnWatchEvent registers a fault. The interceptor calls the fault for every watch event from
// now on. After remove has returned, the interceptor does not call the fault again, and
// delivers the events that only this fault held. It keeps the order of the events.
func (i *Interceptor) OnWatchEvent(fault WatchFault) (remove func()) {
	return i.watchFaults.add(fault)
}
