package inprocess

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// response is a response that the client reads while the handler writes it.
//
// It is both the http.ResponseWriter of the handler and the body of the client's http.Response.
// Writes never block.
type response struct {
	request *http.Request
	cancel  context.CancelFunc // cancels the request of the handler
	header  http.Header        // headers that the handler sets
	begun   chan struct{}      // closed when the client can get the response

	mu      sync.Mutex
	written chan struct{} // receives a token when there is something to read
	sent    http.Header   // copy of header when the handler wrote the status
	code    int           // 0 until the handler writes the status
	flushed bool          // begun is closed
	body    bytes.Buffer
	ended   bool  // the handler has returned
	err     error // why the response is incomplete; nil if it is complete
	closed  bool  // the client has closed the body
}

func newResponse(r *http.Request, cancel context.CancelFunc) *response {
	return &response{
		request: r, cancel: cancel, header: http.Header{}, begun: make(chan struct{}), written: make(chan struct{}, 1),
	}
}

// Header returns the headers that the handler may set until it writes the status.
func (w *response) Header() http.Header { return w.header }

// WriteHeader writes the status. Only the first call has an effect.
func (w *response) WriteHeader(code int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writeHeader(code)
}

func (w *response) writeHeader(code int) {
	if w.code == 0 {
		w.code, w.sent = code, w.header.Clone()
	}
}

// Write appends to the body. It returns an error after the client has closed the body.
func (w *response) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writeHeader(http.StatusOK)
	if w.closed {
		return 0, http.ErrAbortHandler
	}
	return w.body.Write(b)
}

// Flush makes everything that was written readable for the client.
func (w *response) Flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writeHeader(http.StatusOK)
	w.wake()
}

// CloseNotify returns a channel that receives a value when the client cancels the request. The
// method is deprecated, but wrappers in the API server hide Flush of a writer without it.
func (w *response) CloseNotify() <-chan bool {
	canceled := make(chan bool, 1)
	context.AfterFunc(w.request.Context(), func() { canceled <- true })
	return canceled
}

// SetWriteDeadline does nothing, because writes never block. Handlers of the API server
// call it.
func (w *response) SetWriteDeadline(time.Time) error { return nil }

// wake lets RoundTrip return the response, and lets a waiting Read continue. w.mu is locked.
func (w *response) wake() {
	if !w.flushed {
		w.flushed = true
		close(w.begun)
	}
	select {
	case w.written <- struct{}{}:
	default:
	}
}

// finish ends the response after the handler has returned. err says why the response is
// incomplete, and is nil if it is complete.
func (w *response) finish(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		w.writeHeader(http.StatusOK)
	}
	if !w.flushed && err == nil && w.sent.Get("Content-Length") == "" && w.request.Method != http.MethodHead {
		w.sent.Set("Content-Length", strconv.Itoa(w.body.Len()))
	}
	w.ended, w.err = true, err
	w.wake()
}

// result returns the response for the client, or an error if the handler aborted it before
// it flushed anything.
func (w *response) result() (*http.Response, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil && w.body.Len() == 0 {
		w.cancel()
		return nil, w.err
	}
	length := int64(-1)
	if n, err := strconv.ParseInt(w.sent.Get("Content-Length"), 10, 64); err == nil {
		length = n
	}
	return &http.Response{
		Status:     strconv.Itoa(w.code) + " " + http.StatusText(w.code),
		StatusCode: w.code,
		Proto:      "HTTP/2.0", ProtoMajor: 2,
		Header:        w.sent,
		ContentLength: length,
		Body:          w,
		Request:       w.request,
	}, nil
}

// Read reads what the handler has written, and waits if there is nothing. It returns the
// written bytes before the error that broke the response.
func (w *response) Read(b []byte) (int, error) {
	for {
		if n, err := w.tryRead(b); n > 0 || err != nil {
			return n, err
		}
		select {
		case <-w.written:
		case <-w.request.Context().Done():
			return 0, w.request.Context().Err()
		}
	}
}

// tryRead reads without waiting. Both results are zero if the handler has written nothing.
func (w *response) tryRead(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed:
		return 0, http.ErrBodyReadAfterClose
	case w.body.Len() > 0:
		return w.body.Read(b)
	case w.ended && w.err == nil:
		return 0, io.EOF
	}
	return 0, w.err
}

// Close ends the response and cancels the request of the handler.
func (w *response) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.cancel()
	return nil
}
