package interceptor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync"
	"sync/atomic"

	"golang.org/x/net/http2"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

const (
	// requestBytesMax is the longest request body that the interceptor decodes for the history.
	// The API server accepts only 3 MiB. The interceptor forwards a longer body without decoding
	// it, and records a gap: the history misses the body.
	requestBytesMax = 16 << 20
	// responseBytesMax is the longest response body that the interceptor decodes for the
	// history. A list of about 20,000 pods has 64 MiB. The interceptor forwards a longer body
	// without decoding it, and records a gap: the history misses the body.
	responseBytesMax = 64 << 20
)

// buffers is a pool of reusable buffers for response bodies. The interceptor reads a complete
// body into a buffer before it forwards the body.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// pooledBufferBytesMax is the size of the largest buffer that the interceptor reuses. The
// garbage collector frees larger buffers. Otherwise one large response would occupy memory for
// the whole run.
const pooledBufferBytesMax = 4 << 20

// exchange is one request of the controller under test together with its response.
type exchange struct {
	*Interceptor
	route   *Route
	writer  http.ResponseWriter
	request *http.Request
	target  target
	// conn is the tested controller's connection on which the request arrived. The exchange calls
	// BeginDelivery before it records and writes a response, and EndDelivery afterwards. It does
	// not do so for a byte stream such as a log.
	conn Connection
	// record is the history record of the request. It must not change after the exchange has
	// appended it to the history.
	record *history.Request
	// effect says what a fault does to the request, such as refuse it. The field hook is the fault
	// that returned the effect. If no fault affects the request, effect is zero and hook is nil.
	effect RequestEffect
	hook   *hook[RequestFault]
}

// serve processes one request until its response is complete.
//
// It records the request and asks the registered faults for an effect. If a fault returns an
// effect, serve applies it, for example delays or refuses the request. Otherwise serve forwards
// the request, and records and delivers the response.
func (x *exchange) serve() {
	body, err := x.readRequest()
	if err != nil { // the request is incomplete, so the history does not contain it
		x.abort(err)
	}
	x.append(history.Record{Request: x.record})
	x.matchFault()
	if err := x.delay(x.effect.Delay); err != nil {
		x.recordNoResponse(false, 0)
		x.abort(err)
	}
	if x.effect.BeforeForward != nil {
		x.effect.BeforeForward(x.request.Context())
	}
	switch {
	case x.effect.Refuse != nil:
		x.refuse(x.effect.Refuse, history.Response{})
		return
	case x.effect.Break != "":
		x.recordNoResponse(false, 0)
		x.abortInjected(x.effect.Break)
	}
	if err := x.awaitTurn(x.request.Context(), Message{Part: RequestMessage, Request: x.record}); err != nil {
		x.recordNoResponse(false, 0)
		x.abort(err)
	}
	response, reached, err := x.forward(body)
	if err != nil {
		x.recordNoResponse(reached, 0)
		x.abort(err)
	}
	defer response.Body.Close()
	if err := x.delay(x.effect.HoldResponse); err != nil {
		x.recordNoResponse(true, response.StatusCode)
		x.abort(err)
	}
	if err := x.awaitTurn(x.request.Context(), Message{Part: ResponseMessage, Request: x.record}); err != nil {
		x.recordNoResponse(true, response.StatusCode)
		x.abort(err)
	}
	switch {
	case x.effect.Lose != nil:
		x.loseResponse(response)
	case x.target.verb == "watch" && response.StatusCode == http.StatusOK:
		x.stream(response)
	case x.target.hasObjectBody():
		x.relayObject(response)
	default:
		x.relayUnparsed(response)
	}
}

// append appends a record about this exchange, such as the response, to the history of the test
// run.
func (x *exchange) append(record history.Record) { x.recorder.Append(record) }

// gap appends a gap record: a part of this exchange is missing from the history. The error says
// why the part is missing.
func (x *exchange) gap(err error) {
	source := x.target.resource
	if source == "" {
		source = x.record.Path
	}
	x.append(history.Record{Gap: &history.Gap{
		Source: fmt.Sprintf("requests for %s by %s, and watch events that it received", source, x.record.Subject),
		Detail: fmt.Sprintf("request %d: %v", x.record.ID, err),
	}})
}

// readRequest reads the tested controller's request, creates its history record, and returns the
// body for the API server.
//
// The body of an update may contain timestamps that a clock-skew fault shifted earlier.
// readRequest restores the original creationTimestamp and deletionTimestamp in the body. An error
// means that the controller did not send the complete request.
func (x *exchange) readRequest() (io.Reader, error) {
	r := x.request
	x.target = classify(r.Method, r.URL)
	x.record = &history.Request{
		ID:      x.lastID.Add(1),
		Subject: x.route.Subject,
		Query:   r.URL.RawQuery,
		Agent:   r.UserAgent(),
	}
	x.target.fill(x.record)
	if x.target.resource == "" {
		x.record.Path = r.URL.Path
	}
	if r.ContentLength == 0 {
		return nil, nil
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, requestBytesMax+1))
	if err != nil {
		return nil, fmt.Errorf("reading the body of the subject's request %s %s: %w", r.Method, r.URL.Path, err)
	}
	x.record.Bytes = max(len(body), int(r.ContentLength)) // body holds at most requestBytesMax + 1 bytes, even if the request has more
	if len(body) > requestBytesMax {
		x.gap(fmt.Errorf("the request body has more than %d bytes and is not decoded", requestBytesMax))
		return io.MultiReader(bytes.NewReader(body), r.Body), nil
	}
	if err := x.target.readBody(x.record, r.Header.Get("Content-Type"), body); err != nil {
		x.gap(err)
	}
	if x.target.verb == "update" && x.target.resource != "" {
		if body, err = x.skew.restoreBody(&x.target, encodingOf(r.Header.Get("Content-Type")), body); err != nil {
			x.gap(err)
		}
	}
	return bytes.NewReader(body), nil
}

// matchFault asks the registered faults, in order, what to do with the request. It stops at the
// first fault that returns an effect, and stores this effect.
func (x *exchange) matchFault() {
	for _, h := range x.requestFaults.current.Load().all {
		var effect *RequestEffect
		h.call(func(fault RequestFault) { effect = fault(x.record) })
		if effect != nil {
			x.effect, x.hook = *effect, h
			return
		}
	}
}

// forward sends the request to the API server and returns the response. The caller must read and
// close the response body.
//
// The result reached is true if the interceptor had a connection to the API server. The API
// server may then have received the request, even if forward returns an error.
func (x *exchange) forward(body io.Reader) (response *http.Response, reached bool, err error) {
	var connected atomic.Bool
	ctx := httptrace.WithClientTrace(x.request.Context(), &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	request, err := x.upstreamRequest(ctx, body)
	if err != nil {
		return nil, false, err
	}
	response, err = x.route.Upstream.RoundTrip(request)
	return response, connected.Load(), err
}

// upstreamRequest returns the request that the interceptor sends to the API server, with the
// given body.
//
// Its host and its hop-by-hop headers differ from those of the tested controller's request. It
// does not ask for compression, because the interceptor decodes responses. If a stale-list fault
// is active, the query differs too.
func (x *exchange) upstreamRequest(ctx context.Context, body io.Reader) (*http.Request, error) {
	to := *x.request.URL
	to.Scheme, to.Host = x.route.Target.Scheme, x.route.Target.Host
	if x.effect.ListAt != 0 {
		to.RawQuery = listAt(to.Query(), x.effect.ListAt)
	}
	request, err := http.NewRequestWithContext(ctx, x.request.Method, to.String(), body)
	if err != nil {
		return nil, fmt.Errorf("forwarding the subject's request %s %s to the API server: %w", x.request.Method, to.Path, err)
	}
	if request.ContentLength == 0 && body != nil { // net/http does not know the length of this type of body
		request.ContentLength = x.request.ContentLength
	}
	copyHeader(request.Header, x.request.Header)
	request.Header.Del("Accept-Encoding")
	if len(x.request.Header.Values("User-Agent")) == 0 {
		request.Header.Set("User-Agent", "") // otherwise net/http adds its own User-Agent
	}
	return request, nil
}

// recordNoResponse records that the controller under test receives no response. The argument
// reached says whether the API server may have received the request. The argument serverCode is
// the HTTP status that the API server answered, or 0 if it did not answer.
func (x *exchange) recordNoResponse(reached bool, serverCode int) {
	x.append(history.Record{Response: &history.Response{
		ID: x.record.ID, Reached: reached, ServerCode: serverCode, Fault: x.effect.Fault,
	}})
}

// relayObject forwards a response that contains an object, a list or a Status. It decodes and
// records the response before it sends the response to the controller under test. If a clock-skew
// fault is active, relayObject shifts the timestamps in the body.
func (x *exchange) relayObject(response *http.Response) {
	buffer := buffers.Get().(*bytes.Buffer)
	buffer.Reset()
	defer func() {
		if buffer.Cap() <= pooledBufferBytesMax {
			buffers.Put(buffer)
		}
	}()
	if response.ContentLength > 0 {
		buffer.Grow(int(min(response.ContentLength, responseBytesMax)) + bytes.MinRead)
	}
	read, err := io.Copy(buffer, io.LimitReader(response.Body, responseBytesMax+1))
	if err != nil {
		x.recordNoResponse(true, response.StatusCode)
		x.abort(fmt.Errorf("reading the API server's response to %s %s: %w", x.request.Method, x.request.URL.Path, err))
	}
	complete, body := read <= responseBytesMax, buffer.Bytes()
	if complete && response.StatusCode < http.StatusBadRequest {
		if body, x.target.skewed, err = x.skew.skewBody(x.target.requestRef(x.record.ID), encodingOf(response.Header.Get("Content-Type")), body); err != nil {
			x.gap(err)
		}
	}
	if x.deliver(response, body, complete) && !complete {
		x.copyBody(response)
	}
}

// deliver records a response and writes it to the controller under test. It returns false if the
// write fails. If the controller can no longer receive the response, deliver panics with
// http.ErrAbortHandler.
//
// The argument body contains the bytes of the response body that have been read. The argument
// complete is true if these bytes are the whole body.
func (x *exchange) deliver(response *http.Response, body []byte, complete bool) bool {
	x.conn.BeginDelivery()
	defer x.conn.EndDelivery()
	if x.subjectGone() {
		x.recordNoResponse(true, response.StatusCode)
		panic(http.ErrAbortHandler) // the response of a handler that returns would be complete and empty
	}
	x.recordResponse(response, body, complete)
	copyHeader(x.writer.Header(), response.Header)
	if complete && x.request.Method != http.MethodHead {
		x.writer.Header().Set("Content-Length", strconv.Itoa(len(body)))
	}
	x.writer.WriteHeader(response.StatusCode)
	_, err := x.writer.Write(body)
	return err == nil
}

// subjectGone reports whether the controller under test can no longer receive a response. The
// reason is that the controller canceled the request, or that the connection broke.
func (x *exchange) subjectGone() bool {
	return x.conn.Broken() || x.request.Context().Err() != nil
}

// recordResponse appends a response to the history. For a list, it also appends a record with the
// list's items. It decodes the body only if the argument complete is true. If it cannot decode the
// body of a successful response, it appends a gap record: the history misses the body.
func (x *exchange) recordResponse(response *http.Response, body []byte, complete bool) {
	var content responseContent
	var err error
	if complete {
		content, err = x.target.readResponse(encodingOf(response.Header.Get("Content-Type")), body)
	} else {
		err = fmt.Errorf("the response body has more than %d bytes and is not decoded", responseBytesMax)
	}
	if failed := response.StatusCode >= http.StatusBadRequest; err != nil && !failed {
		x.gap(err) // no gap for an HTTP error, whose body need not be a Status
	}
	length := len(body)
	if !complete {
		length = max(length, int(response.ContentLength))
	}
	x.append(history.Record{Response: &history.Response{
		ID:         x.record.ID,
		Code:       response.StatusCode,
		ServerCode: response.StatusCode,
		Reached:    true,
		Reason:     content.reason,
		Cause:      content.cause,
		Denied:     content.denied,
		Fault:      x.effect.Fault,
		Object:     content.object,
		RetryAfter: retryAfter(response.Header),
		Bytes:      length,
	}})
	x.storeOwner(content.object)
	if content.list != nil {
		content.list.ID = x.record.ID
		content.list.Subject = x.record.Subject
		x.append(history.Record{List: content.list})
		for i := range content.list.Items {
			x.owners.set(&content.list.Items[i])
		}
	}
}

// storeOwner stores the owner of the object in a response, for [Interceptor.Controller].
func (x *exchange) storeOwner(object *history.Object) {
	if history.HasKindOfResource(x.target.subresource) {
		x.owners.set(object)
	}
}

// relayUnparsed forwards a response that contains no API object, such as a log or the API
// server's version. It does not decode the body.
func (x *exchange) relayUnparsed(response *http.Response) {
	x.append(history.Record{Response: &history.Response{
		ID: x.record.ID, Code: response.StatusCode, ServerCode: response.StatusCode, Reached: true,
		Fault: x.effect.Fault, RetryAfter: retryAfter(response.Header), Bytes: max(0, int(response.ContentLength)),
	}})
	copyHeader(x.writer.Header(), response.Header)
	x.writer.WriteHeader(response.StatusCode)
	x.copyBody(response)
}

// copyBody forwards the unread rest of a response body to the controller under test. It flushes
// each chunk as soon as the chunk arrives.
func (x *exchange) copyBody(response *http.Response) {
	control := http.NewResponseController(x.writer)
	chunk := make([]byte, 32<<10)
	for {
		n, err := response.Body.Read(chunk)
		if _, err := x.writer.Write(chunk[:n]); err != nil {
			return // the subject closed the request
		}
		switch {
		case err == io.EOF:
			return
		case err != nil:
			x.abort(fmt.Errorf("reading the API server's response to %s %s: %w", x.request.Method, x.request.URL.Path, err))
		}
		if err := control.Flush(); err != nil {
			return
		}
	}
}

// abort ends the exchange without a complete response, as a failing API server does. If err is an
// HTTP/2 stream reset, abort breaks only the stream of this request. For any other error, abort
// also resets the tested controller's connection, which breaks all other requests on it. If the
// controller has canceled the request, the connection stays open.
//
// abort does not return: it panics with http.ErrAbortHandler, which net/http recovers.
func (x *exchange) abort(err error) {
	var reset http2.StreamError
	if x.request.Context().Err() == nil && !errors.As(err, &reset) {
		x.conn.Reset()
	}
	panic(http.ErrAbortHandler)
}
