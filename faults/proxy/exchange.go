package proxy

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
	// requestBytesMax bounds what is read of a request for the history. The API
	// server itself takes 3 MiB; what it does with a longer one is up to it.
	requestBytesMax = 16 << 20
	// responseBytesMax bounds what is read of an answer for the history; 64 MiB are
	// some 20,000 pods. The rest of a longer one passes unread, and the history
	// gets a gap.
	responseBytesMax = 64 << 20
)

// buffers are for answers, which are read as a whole before they are passed on.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// pooledBufferBytesMax bounds the buffers that wait to be used again.
const pooledBufferBytesMax = 4 << 20

// exchange is one request and its answer.
type exchange struct {
	proxy    *Proxy
	instance *instanceServer
	writer   http.ResponseWriter
	request  *http.Request
	target   target
	// conn is the connection that it came by. Its handing is held while the subject
	// is told what the history tells of.
	conn *subjectConn
	// record is the request in the history: appended, so no longer to be changed.
	record *history.Request
	// effect is what a fault does to it, and hook that fault; no fault does nothing.
	effect RequestEffect
	hook   *hook[RequestFault]
}

// serve is the life of a request.
func (x *exchange) serve() {
	body, err := x.readRequest()
	if err != nil { // what was not finished was not asked
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
	lane := x.instance.transports.acquire()
	defer x.instance.transports.release(lane)
	response, reached, err := x.forward(lane, body)
	if err != nil {
		x.recordNoResponse(reached, 0)
		x.abort(err)
	}
	defer response.Body.Close()
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

func (x *exchange) append(record history.Record) { x.proxy.recorder.Append(record) }

// gap says that the history misses something of what the subject said or heard.
func (x *exchange) gap(err error) {
	what := x.target.resource
	if what == "" {
		what = x.record.Path
	}
	x.append(history.Record{Gap: &history.Gap{
		Source: fmt.Sprintf("%s's view of %s", x.record.Subject, what),
		Detail: fmt.Sprintf("request %d: %v", x.record.ID, err),
	}})
}

// readRequest takes in the request, makes its record and returns its body. An error
// means that the subject did not finish it.
func (x *exchange) readRequest() (io.Reader, error) {
	r := x.request
	x.target = classify(r.Method, r.URL)
	x.record = &history.Request{
		ID:      x.proxy.lastID.Add(1),
		Subject: x.instance.subject,
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
		return nil, fmt.Errorf("reading a request: %w", err)
	}
	x.record.Bytes = max(len(body), int(r.ContentLength)) // it may be longer than what is read
	if len(body) > requestBytesMax {
		x.gap(fmt.Errorf("a body of more than %d bytes", requestBytesMax))
		return io.MultiReader(bytes.NewReader(body), r.Body), nil
	}
	if err := x.target.readBody(x.record, r.Header.Get("Content-Type"), body); err != nil {
		x.gap(err)
	}
	if x.target.verb == "update" && x.target.resource != "" {
		if body, err = x.proxy.skew.restoreBody(encodingOf(r.Header.Get("Content-Type")), body); err != nil {
			x.gap(err)
		}
	}
	return bytes.NewReader(body), nil
}

// matchFault asks the faults, first come first served.
func (x *exchange) matchFault() {
	for _, h := range x.proxy.requestFaults.current.Load().all {
		var effect *RequestEffect
		h.call(func(fault RequestFault) { effect = fault(x.record) })
		if effect != nil {
			x.effect, x.hook = *effect, h
			return
		}
	}
}

// forward sends the request to the API server and returns its answer, the body
// yet to be read. Reached is whether the API server may have seen it: a
// connection to it was there to be written to.
func (x *exchange) forward(over http.RoundTripper, body io.Reader) (response *http.Response, reached bool, err error) {
	var connected atomic.Bool
	ctx := httptrace.WithClientTrace(x.request.Context(), &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	request, err := x.upstreamRequest(ctx, body)
	if err != nil {
		return nil, false, err
	}
	response, err = over.RoundTrip(request)
	return response, connected.Load(), err
}

// upstreamRequest is the request as it goes to the API server: the subject's own but
// for the address and what concerns a single connection. No compression is asked
// for, since events and lists are to be read.
func (x *exchange) upstreamRequest(ctx context.Context, body io.Reader) (*http.Request, error) {
	to := *x.request.URL
	to.Scheme, to.Host = x.proxy.target.Scheme, x.proxy.target.Host
	if x.effect.ListAt != 0 {
		to.RawQuery = listAt(to.Query(), x.effect.ListAt)
	}
	request, err := http.NewRequestWithContext(ctx, x.request.Method, to.String(), body)
	if err != nil {
		return nil, fmt.Errorf("forwarding a request: %w", err)
	}
	if request.ContentLength == 0 && body != nil { // it is not all in memory
		request.ContentLength = x.request.ContentLength
	}
	copyHeader(request.Header, x.request.Header)
	request.Header.Del("Accept-Encoding")
	if len(x.request.Header.Values("User-Agent")) == 0 {
		request.Header.Set("User-Agent", "") // or net/http would put in its own
	}
	return request, nil
}

// recordNoResponse records that the subject gets no answer.
func (x *exchange) recordNoResponse(reached bool, serverCode int) {
	x.append(history.Record{Response: &history.Response{
		ID: x.record.ID, Reached: reached, ServerCode: serverCode, Fault: x.effect.Fault,
	}})
}

// relayObject records an answer, then hands it to the subject.
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
		x.abort(fmt.Errorf("reading an answer: %w", err))
	}
	whole, body := read <= responseBytesMax, buffer.Bytes()
	if whole && response.StatusCode < http.StatusBadRequest {
		if body, x.target.skewed, err = x.proxy.skew.skewBody(x.target.requestRef(x.record.ID), encodingOf(response.Header.Get("Content-Type")), body); err != nil {
			x.gap(err)
		}
	}
	if x.deliver(response, body, whole) && !whole {
		x.copyBody(response)
	}
}

// deliver records an answer and hands it over, and reports whether the subject was
// there to take it.
func (x *exchange) deliver(response *http.Response, body []byte, whole bool) bool {
	x.conn.delivering.RLock()
	defer x.conn.delivering.RUnlock()
	if x.subjectGone() {
		x.recordNoResponse(true, response.StatusCode)
		return false
	}
	x.recordResponse(response, body, whole)
	copyHeader(x.writer.Header(), response.Header)
	if whole && x.request.Method != http.MethodHead {
		x.writer.Header().Set("Content-Length", strconv.Itoa(len(body)))
	}
	x.writer.WriteHeader(response.StatusCode)
	_, err := x.writer.Write(body)
	return err == nil
}

// subjectGone reports whether the subject is not there any more to be told anything.
func (x *exchange) subjectGone() bool {
	return x.conn.broken.Load() || x.request.Context().Err() != nil
}

// recordResponse appends an answer, and a list's content behind it.
func (x *exchange) recordResponse(response *http.Response, body []byte, whole bool) {
	var content responseContent
	var err error
	if whole {
		content, err = x.target.readResponse(encodingOf(response.Header.Get("Content-Type")), body)
	} else {
		err = fmt.Errorf("an answer of more than %d bytes", responseBytesMax)
	}
	if failed := response.StatusCode >= http.StatusBadRequest; err != nil && !failed {
		x.gap(err) // an error page need not be a Status
	}
	length := len(body)
	if !whole {
		length = max(length, int(response.ContentLength))
	}
	x.append(history.Record{Response: &history.Response{
		ID:         x.record.ID,
		Code:       response.StatusCode,
		ServerCode: response.StatusCode,
		Reached:    true,
		Reason:     content.reason,
		Cause:      content.cause,
		Fault:      x.effect.Fault,
		Object:     content.object,
		RetryAfter: retryAfter(response.Header),
		Bytes:      length,
	}})
	x.proxy.owners.set(content.object)
	if content.list != nil {
		content.list.ID = x.record.ID
		content.list.Subject = x.record.Subject
		x.append(history.Record{List: content.list})
		for i := range content.list.Items {
			x.proxy.owners.set(&content.list.Items[i])
		}
	}
}

// relayUnparsed hands on an answer that is no object as it comes.
func (x *exchange) relayUnparsed(response *http.Response) {
	x.append(history.Record{Response: &history.Response{
		ID: x.record.ID, Code: response.StatusCode, ServerCode: response.StatusCode, Reached: true,
		Fault: x.effect.Fault, RetryAfter: retryAfter(response.Header), Bytes: max(0, int(response.ContentLength)),
	}})
	copyHeader(x.writer.Header(), response.Header)
	x.writer.WriteHeader(response.StatusCode)
	x.copyBody(response)
}

// copyBody hands on the rest of an answer, each piece as soon as it is there.
func (x *exchange) copyBody(response *http.Response) {
	control := http.NewResponseController(x.writer)
	piece := make([]byte, 32<<10)
	for {
		n, err := response.Body.Read(piece)
		if _, err := x.writer.Write(piece[:n]); err != nil {
			return // the subject went away
		}
		switch {
		case err == io.EOF:
			return
		case err != nil:
			x.abort(fmt.Errorf("reading an answer: %w", err))
		}
		if err := control.Flush(); err != nil {
			return
		}
	}
}

// abort ends the exchange as a broken API server would. A stream that the
// API server reset is reset; when the connection to it broke, or there was none,
// so does the subject's, and with it everything else on it. It does not return.
func (x *exchange) abort(err error) {
	var reset http2.StreamError
	if x.request.Context().Err() == nil && !errors.As(err, &reset) {
		resetConnection(x.request.Context())
	}
	panic(http.ErrAbortHandler)
}
