package interceptor

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"golang.org/x/net/http2"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// delay waits for the time d, because a fault delays this request. It returns early if the test
// run heals the fault. It returns an error if the controller under test cancels the request.
func (x *exchange) delay(d time.Duration) error {
	if d <= 0 {
		return nil
	}
	x.held.Add(1)
	defer x.held.Add(-1)
	timer := x.clock.NewTimer(d)
	defer timer.Stop()
	for {
		// Load the registered faults before the call of isRemoved. If the fault is removed after that
		// call, its removal closes faults.superseded.
		faults := x.requestFaults.current.Load()
		if x.hook.isRemoved() {
			return nil
		}
		select {
		case <-timer.C():
			return nil
		case <-faults.superseded:
		case <-x.request.Context().Done():
			return x.request.Context().Err()
		}
	}
}

// refuse sends the controller under test an API error in place of the API server's response, and
// records the error.
//
// The caller sets two fields of the argument record. Reached says whether the API server received
// the request, and ServerCode is the HTTP status of its answer. refuse sets the other fields.
func (x *exchange) refuse(refusal *Refusal, record history.Response) {
	status := refusal.status(x.record)
	record.ID, record.Code, record.Reason, record.Fault = x.record.ID, refusal.Code, string(status.Reason), x.effect.Fault
	if refusal.RetryAfterSeconds > 0 {
		record.RetryAfter = &refusal.RetryAfterSeconds
	}
	contentType, body, err := encodeStatus(x.request.Header.Values("Accept"), status)
	if err != nil {
		x.recordNoResponse(record.Reached, record.ServerCode)
		x.abort(err)
	}
	record.Bytes = len(body)
	x.conn.BeginDelivery()
	x.append(history.Record{Response: &record})
	err = writeStatus(x.writer, contentType, body, status)
	x.conn.EndDelivery()
	if err != nil {
		x.abort(err)
	}
}

// loseResponse reads the API server's response but does not deliver it. The field Lose of
// [RequestEffect] says what the controller under test gets instead. It gets an API error, half of
// the response, or a reset.
func (x *exchange) loseResponse(response *http.Response) {
	body, err := io.ReadAll(io.LimitReader(response.Body, responseBytesMax))
	if err != nil { // the connection to the API server broke, and not because of a fault
		x.recordNoResponse(true, response.StatusCode)
		x.abort(fmt.Errorf("reading the API server's response to %s %s: %w", x.request.Method, x.request.URL.Path, err))
	}
	loss := x.effect.Lose
	if err := x.delay(loss.After); err != nil {
		x.recordNoResponse(true, response.StatusCode)
		x.abort(err)
	}
	// If the interceptor cannot decode the response, the record has no object. This is not a gap
	// (a missing part of the history), because the subject does not receive the response.
	content, _ := x.target.readResponse(encodingOf(response.Header.Get("Content-Type")), body)
	x.storeOwner(content.object)
	record := history.Response{
		ID: x.record.ID, ServerCode: response.StatusCode, Reached: true, Fault: x.effect.Fault, Object: content.object,
	}
	if loss.Refuse != nil {
		x.refuse(loss.Refuse, record)
		return
	}
	if loss.Cut {
		record.Bytes = len(body) / 2
	}
	x.append(history.Record{Response: &record})
	if loss.Cut {
		x.writeHalf(response, body)
	}
	x.abortInjected(loss.Break)
}

// writeHalf sends the controller under test the first half of a response. The Content-Length
// header states the length of the whole response, so that the controller notices that half is
// missing.
func (x *exchange) writeHalf(response *http.Response, body []byte) {
	copyHeader(x.writer.Header(), response.Header)
	x.writer.Header().Set("Content-Length", strconv.Itoa(len(body)))
	x.writer.WriteHeader(response.StatusCode)
	if _, err := x.writer.Write(body[:len(body)/2]); err != nil {
		return // the subject closed the request; the exchange ends anyway
	}
	_ = http.NewResponseController(x.writer).Flush() // after an error the exchange ends anyway
}

// abortInjected resets the request's HTTP/2 stream or its whole connection, because a fault
// demands it. Like abort, it panics and does not return.
func (x *exchange) abortInjected(how ConnectionBreak) {
	if how == BreakConnection {
		x.abort(errInjectedBreak)
	}
	x.abort(http2.StreamError{Code: http2.ErrCodeInternal, Cause: errInjectedBreak})
}

// errInjectedBreak is the error of a stream or connection that a fault reset.
var errInjectedBreak = errors.New("a fault of gauntlet broke the connection or the stream")

// listAt sets the resourceVersion in the query of a list request, and returns the encoded query.
// The API server then returns the objects as they were at exactly this version. The API server
// reads them from etcd, so the result is a state that really existed.
func listAt(query url.Values, version history.Version) string {
	query.Set("resourceVersion", strconv.FormatUint(uint64(version), 10))
	query.Set("resourceVersionMatch", "Exact")
	return query.Encode()
}

// retryAfter returns the number of seconds in the Retry-After header of a response. It returns nil
// if the header is missing or contains a date.
func retryAfter(header http.Header) *int {
	seconds, err := strconv.Atoi(header.Get("Retry-After"))
	if err != nil {
		return nil // client-go also ignores a Retry-After header with a date
	}
	return &seconds
}
