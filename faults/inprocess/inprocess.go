// Package inprocess carries HTTP requests by function calls, for a subject that is linked into
// this process. The subject is the controllers under test. The package opens no socket, so it
// also works in a bubble of testing/synctest, where the clock is virtual.
//
// A [Client] is an http.RoundTripper whose requests an http.Handler in this process serves. A
// Client of [Connect] passes the requests of one replica to an interceptor. Package proxy does
// the same for a replica that runs in a process of its own. A Client of [Direct] bypasses the
// interceptor. With these two, a controller, the interceptor and an API server can run in one
// process.
//
// A Client behaves like an HTTP/2 connection. An aborted request returns the error
// http2.StreamError, and requests on a broken connection return ECONNRESET. Later requests use a
// new connection. After the connection broke, the caller can still read the part of a response
// that the handler had written. Unlike a socket, a Client buffers all unread data, without a
// limit.
package inprocess

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/net/http2"

	"github.com/kube-gauntlet/gauntlet/faults/interceptor"
)

// errReset is the error that requests return after their connection was reset.
var errReset = &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}

// errAborted is the cause in the http2.StreamError that an aborted request returns. A handler
// aborts a request by a panic with http.ErrAbortHandler.
var errAborted = errors.New("the handler aborted the request")

// Client sends HTTP requests to a handler in this process by function calls, without a socket. It
// implements http.RoundTripper. Create it with [Connect] or [Direct], and call [Client.Close] at
// the end.
type Client struct {
	serve func(*connection, http.ResponseWriter, *http.Request)

	mu       sync.Mutex
	current  *connection
	closed   bool
	handlers sync.WaitGroup // handlers of the requests in flight
}

// Connect returns a client for one replica of the subject, such as "subject-0". The subject is the
// controllers under test. The interceptor i receives each request of the client, and sends it to
// the API server with the argument upstream. The scheme and the host in the URL stay unchanged.
func Connect(i *interceptor.Interceptor, subject string, upstream http.RoundTripper) *Client {
	c := &Client{}
	c.serve = func(on *connection, w http.ResponseWriter, r *http.Request) {
		route := &interceptor.Route{Subject: subject, Target: r.URL, Upstream: upstream, Stopping: c.isClosed}
		i.Serve(route, on, w, r)
	}
	return c
}

// Direct returns a client whose requests the handler serves. If the handler panics with
// http.ErrAbortHandler, the request is aborted. Any other panic ends the program.
func Direct(handler http.Handler) *Client {
	return &Client{serve: func(_ *connection, w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, r) }}
}

// Close breaks all requests and waits until their handlers have returned. Later requests fail
// with ECONNREFUSED. A handler of this client must not call Close.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	current := c.current
	c.mu.Unlock()
	if current != nil {
		current.Reset()
	}
	c.handlers.Wait()
}

// Abort breaks all requests and refuses later ones, as Close does, but does not wait. If the
// interceptor has recorded a response, the response is still written before the break.
func (c *Client) Abort() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	go c.Close()
}

// isClosed reports whether Close or Abort was called. The interceptor calls it to find out why a
// watch ended.
func (c *Client) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// enter registers a new request, so that Close waits for it, and returns the connection for the
// request. It returns an error after Close or Abort.
func (c *Client) enter() (*connection, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	}
	if c.current == nil || c.current.Broken() {
		c.current = newConnection()
	}
	c.handlers.Add(1)
	return c.current, nil
}

// RoundTrip runs the handler for the request in a new goroutine. It returns when the handler has
// flushed or completed the response, or when the request's context ends.
func (c *Client) RoundTrip(r *http.Request) (*http.Response, error) {
	on, err := c.enter()
	if err != nil {
		return nil, err
	}
	if trace := httptrace.ContextClientTrace(r.Context()); trace != nil && trace.GotConn != nil {
		trace.GotConn(httptrace.GotConnInfo{})
	}
	ctx, cancel := context.WithCancel(r.Context())
	response := newResponse(r, cancel)
	handled := make(chan struct{})
	c.handlers.Go(func() { // a reset of the connection cancels the handler's context
		select {
		case <-on.reset:
			cancel()
		case <-handled:
		}
	})
	go func() {
		// Replace the labels that this goroutine inherits from the client's goroutine, because the
		// handler is not the client's code.
		pprof.SetGoroutineLabels(ctx)
		defer c.handlers.Done()
		defer close(handled)
		response.finish(c.call(on, response, serverRequest(ctx, r)))
	}()
	select {
	case <-response.begun:
		return response.result()
	case <-r.Context().Done():
		cancel()
		return nil, r.Context().Err()
	}
}

// call runs the handler. It returns nil if the response is complete. Otherwise the error says
// whether the request was aborted or the connection was reset.
func (c *Client) call(on *connection, w http.ResponseWriter, r *http.Request) (err error) {
	if r.Body != nil {
		defer r.Body.Close() // an http.RoundTripper must close the body
	}
	defer func() {
		p := recover()
		aborted, _ := p.(error)
		switch {
		case p == nil:
		case !errors.Is(aborted, http.ErrAbortHandler):
			panic(p)
		case on.Broken():
			err = errReset
		default:
			err = http2.StreamError{Code: http2.ErrCodeInternal, Cause: errAborted}
		}
	}()
	c.serve(on, w, r)
	return nil
}

// serverRequest converts the client's request r into the request that the handler receives.
func serverRequest(ctx context.Context, r *http.Request) *http.Request {
	received := r.Clone(ctx)
	received.RequestURI = r.URL.RequestURI()
	received.RemoteAddr = "127.0.0.1:1"
	received.Proto, received.ProtoMajor, received.ProtoMinor = "HTTP/2.0", 2, 0
	if received.Host == "" {
		received.Host = r.URL.Host
	}
	if received.Body == nil {
		received.Body = http.NoBody
	}
	return received
}

// connection represents one connection to the handler. A reset of the connection breaks all
// requests on it. It implements [interceptor.Connection].
//
// Its methods wait with a sync.Cond and not with a lock. In a bubble of testing/synctest, the clock
// stands still while a goroutine waits for a lock.
type connection struct {
	broken atomic.Bool
	reset  chan struct{} // closed when Reset breaks the connection

	mu         sync.Mutex
	changed    *sync.Cond // wakes waiting goroutines when the field deliveries or resetting changes
	deliveries int        // number of responses and events that are being recorded and written
	resetting  bool       // Reset waits for the deliveries in progress, or has ended
}

func newConnection() *connection {
	c := &connection{reset: make(chan struct{})}
	c.changed = sync.NewCond(&c.mu)
	return c
}

// BeginDelivery prevents a reset of the connection until EndDelivery. The interceptor calls
// BeginDelivery before it records a response or watch event. It calls EndDelivery after it has
// written the response or event. Therefore the history contains only responses and events that the
// client receives. If a reset is in progress, BeginDelivery first waits for its end.
func (c *connection) BeginDelivery() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.resetting && !c.Broken() {
		c.changed.Wait()
	}
	c.deliveries++
}

// EndDelivery ends a delivery that BeginDelivery began: the response or event is written. A Reset
// that waits for deliveries continues when the last delivery has ended.
func (c *connection) EndDelivery() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deliveries--
	c.changed.Broadcast()
}

// Broken reports whether the connection was reset.
func (c *connection) Broken() bool { return c.broken.Load() }

// Reset breaks the connection and all requests on it. It first waits until the interceptor has
// written every response or event that it is delivering; see BeginDelivery. A second call has no
// effect.
func (c *connection) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.resetting = true
	for c.deliveries > 0 && !c.Broken() {
		c.changed.Wait()
	}
	if !c.broken.Swap(true) {
		close(c.reset)
	}
	c.changed.Broadcast()
}
