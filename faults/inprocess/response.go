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

// response is an HTTP response that the client reads while the handler still writes it.
//
// It is the handler's http.ResponseWriter and also the Body of the client's http.Response.
// Writes never block.
type response struct {
	request *http.Request
	cancel  context.CancelFunc // cancels the request of the handler
	header  http.Header        // response headers that the handler sets
	begun   chan struct{}      // closed when RoundTrip may return the response

	mu      sync.Mutex
	written chan struct{} // receives a value when a waiting Read may continue
	sent    http.Header   // copy of header, made when the handler wrote the status
	code    int           // HTTP status; 0 until the handler writes it
	flushed bool          // the channel begun is closed
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

// Header returns the response headers. The handler may change them until it writes the status.
func (w *response) Header() http.Header { return w.header }

// WriteHeader sets the HTTP status. Only the first call has an effect.
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

// Write appends bytes to the body. It returns an error after the client has closed the body.
func (w *response) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writeHeader(http.StatusOK)
	if w.closed {
		return 0, http.ErrAbortHandler
	}
	return w.body.Write(b)
}

// Flush lets the client read everything that the handler has written.
func (w *response) Flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writeHeader(http.StatusOK)
	w.wake()
}

// CloseNotify returns a channel that receives a value when the client cancels the request. The
// method is deprecated. But if a ResponseWriter lacks it, wrappers in the API server hide the
// writer's Flush method.
func (w *response) CloseNotify() <-chan bool {
	canceled := make(chan bool, 1)
	context.AfterFunc(w.request.Context(), func() { canceled <- true })
	return canceled
}

// SetWriteDeadline does nothing, because writes never block. It exists because handlers of the
// API server call it.
func (w *response) SetWriteDeadline(time.Time) error { return nil }

// wake lets RoundTrip return the response, or lets a waiting Read continue. The caller must hold
// w.mu.
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

// finish ends the response after the handler has returned. err is nil if the response is complete.
// Otherwise err says why the response is incomplete.
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

// result returns the response for the client. It returns an error if the request was aborted, or
// the connection was reset, before the handler wrote any body.
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

// Read reads bytes that the handler has written. If there are none, Read waits. If the response
// broke, Read first returns the written bytes and then the error.
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

// tryRead reads written bytes without waiting. It returns 0 and nil if there are no unread bytes
// yet.
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

// Close closes the body for the client and cancels the context of the handler's request.
func (w *response) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.cancel()
	return nil
}
