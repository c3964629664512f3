// Package interceptor records each request of the subject and decides what happens to the
// request. The subject is the controllers under test. The package also records every response
// and watch event that the subject receives. It applies the effects of faults to requests,
// responses and watch events.
//
// The interceptor does not carry requests; a transport does. Package proxy is the transport for
// a subject in separate processes, and uses sockets. Package inprocess is the transport for a
// subject in this process, and uses function calls. The transport passes each request to
// [Interceptor.Serve]. The interceptor sends the request to the API server with an
// http.RoundTripper that the transport provides.
//
// Without a fault the interceptor is transparent. It forwards responses and watch events byte
// for byte, and a stream reset as a stream reset. If the API server is down, it breaks the
// subject's connection. It forwards the subject's credentials and never records them. Responses
// are not compressed.
//
// The interceptor records a request before it forwards the request. It records a response or a
// watch event before it delivers the response or event to the subject. If it cannot decode a
// body or an event, it forwards the bytes unchanged. It then records a gap: the history misses
// the body or event.
//
// # Files
//
// The faults in other packages decide which requests and watch events the interceptor changes.
// Every request and every watch event passes three steps:
//
//  1. Match. A fault in another package registers a [RequestFault] or [WatchFault] with
//     [Interceptor.OnRequest] or [Interceptor.OnWatchEvent]. The interceptor calls this
//     function and gets an effect or nil. hooks.go stores the functions.
//     exchange.matchFault calls them for requests, and stream.inspect calls them for events.
//     request_target.go parses verb, resource and name from the URL. owner_index.go finds
//     the owner of an object.
//  2. Effect. [RequestEffect] and [WatchEffect] describe the effects. The interceptor applies
//     their fields in the order of declaration. exchange.serve applies the effects to a
//     request; inject.go and refuse.go implement these effects. stream.deliverEvents and
//     queue.go hold watch events. [Interceptor.EndWatches] (watch_end.go) and
//     [Interceptor.SkewClock] (skew.go) act without a match. After all other effects, an
//     [OrderFault] (order.go) decides when each message passes.
//  3. Record. exchange.go appends requests and responses to the history. watch.go appends
//     deliveries and the ends of watches. decode.go converts bodies to history objects, and
//     frames.go splits watch streams into events. The fault itself records that it fired,
//     with faults.Reporter.
//
// To add an effect, add a field to [RequestEffect] or [WatchEffect]. Apply the effect in
// exchange.serve or stream.inspect, in the order of the fields. Record the effect in the
// response or delivery.
package interceptor

import (
	"net/http"
	"net/url"
	"sync/atomic"

	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Recorder appends records to the history of a run. [history.Recorder] implements it.
type Recorder interface {
	Append(history.Record)
}

// Interceptor records the requests of the controllers under test, and applies the effects of
// faults to these requests. One Interceptor serves all replicas of the controllers. [New]
// creates an Interceptor.
type Interceptor struct {
	recorder      Recorder
	clock         clock.WithTicker // measures how long requests are delayed and watch events are held
	requestFaults *hooks[RequestFault]
	watchFaults   *hooks[WatchFault]
	orderFaults   *hooks[OrderFault]
	lastID        atomic.Uint64 // ID of the newest request; IDs begin at 1
	held          atomic.Int64  // number of requests, responses and events that faults hold now
	openStreams   openStreams
	owners        *ownerIndex
	skew          skewedClock
}

// New returns an interceptor without faults. The interceptor appends its records to the
// recorder. It uses the clock to measure delays of requests and holds of watch events.
func New(recorder Recorder, clock clock.WithTicker) *Interceptor {
	return &Interceptor{
		recorder:      recorder,
		clock:         clock,
		requestFaults: newHooks[RequestFault](),
		watchFaults:   newHooks[WatchFault](),
		orderFaults:   newHooks[OrderFault](),
		openStreams:   openStreams{all: map[*stream]bool{}},
		owners:        newOwnerIndex(),
	}
}

// Held returns how many requests, responses and watch events wait because a fault holds them. It does
// not count messages that wait for their turn in an [OrderFault], or events behind a held event.
func (i *Interceptor) Held() int { return int(i.held.Load()) }

// Route says which replica of the controllers under test sent a request, and how the request
// reaches the API server.
type Route struct {
	// Subject is the name of the replica, such as "subject-0". The history lists the replica's
	// requests under this name.
	Subject string
	// Target is a URL with the API server's scheme and host. The interceptor ignores its other
	// parts.
	Target *url.URL
	// Upstream sends a request to the API server. When Upstream has a connection to the API
	// server, it must call GotConn of the request's httptrace.ClientTrace.
	//
	// If Upstream returns an http2.StreamError, the interceptor breaks only this request. For any
	// other error, the interceptor breaks the tested controller's connection.
	Upstream http.RoundTripper
	// Stopping reports whether the transport is being stopped and therefore breaks requests. If so,
	// the interceptor records that the proxy ended a watch. Otherwise it would record that the
	// controller under test closed the watch.
	Stopping func() bool
}

// Connection is the connection on which a request of the controllers under test arrived. Several
// requests can share one connection.
type Connection interface {
	// BeginDelivery prevents a reset of the connection until EndDelivery is called. The
	// interceptor calls BeginDelivery before it records a response or event. It calls EndDelivery
	// after it has written the response or event. Otherwise the history could contain responses
	// that the controller under test did not receive. Several deliveries can be in progress at the
	// same time.
	BeginDelivery()
	EndDelivery()
	// Broken reports whether the connection was reset.
	Broken() bool
	// Reset breaks the connection and all requests on it. Reset waits until all deliveries in
	// progress have ended. The caller must not call Reset between BeginDelivery and EndDelivery.
	Reset()
}

// Serve processes one request of the controllers under test until its response is complete.
//
// If the controllers cannot receive a complete response, Serve panics with http.ErrAbortHandler,
// as net/http handlers do. The transport must then break the response.
func (i *Interceptor) Serve(route *Route, connection Connection, w http.ResponseWriter, r *http.Request) {
	x := &exchange{Interceptor: i, route: route, conn: connection, writer: w, request: r}
	x.serve()
}

// OnRequest registers a fault. The interceptor calls the fault for every request from now on. The
// returned function remove ends the registration. After remove has returned, the interceptor does
// not call the fault again.
func (i *Interceptor) OnRequest(fault RequestFault) (remove func()) {
	return i.requestFaults.add(fault)
}

// OnWatchEvent registers a fault. The interceptor calls the fault for every watch event from now
// on. The returned function remove ends the registration. After remove has returned, the
// interceptor does not call the fault again. Events that only this fault held are then delivered,
// in their original order.
func (i *Interceptor) OnWatchEvent(fault WatchFault) (remove func()) {
	return i.watchFaults.add(fault)
}
