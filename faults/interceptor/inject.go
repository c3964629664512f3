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

// delay waits for the given time. It returns early if the fault that requires the delay is
// removed. It returns an error if the subject cancels the request.
func (x *exchange) delay(d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := x.clock.NewTimer(d)
	defer timer.Stop()
	for {
		faults := x.requestFaults.current.Load() // loaded first: a removal after this line closes superseded
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

// refuse sends the subject an error in place of the API server's response, and records the
// error.
//
// The caller sets two fields of record: whether the API server received the request, and with
// which status it answered. refuse sets the other fields.
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

// loseResponse reads the API server's response and does not deliver it. The subject instead
// gets what [RequestEffect].Lose says.
func (x *exchange) loseResponse(response *http.Response) {
	body, err := io.ReadAll(io.LimitReader(response.Body, responseBytesMax))
	if err != nil { // the connection to the API server broke, without a fault
		x.recordNoResponse(true, response.StatusCode)
		x.abort(fmt.Errorf("reading a response of the API server: %w", err))
	}
	loss := x.effect.Lose
	if err := x.delay(loss.After); err != nil {
		x.recordNoResponse(true, response.StatusCode)
		x.abort(err)
	}
	// If the response cannot be decoded, the record has no object. This is not a gap,
	// because the subject does not receive the response.
	content, _ := x.target.readResponse(encodingOf(response.Header.Get("Content-Type")), body)
	x.owners.set(content.object)
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

// writeHalf sends the subject the first half of a response. The Content-Length is that of
// the whole response, so that the subject notices the missing half.
func (x *exchange) writeHalf(response *http.Response, body []byte) {
	copyHeader(x.writer.Header(), response.Header)
	x.writer.Header().Set("Content-Length", strconv.Itoa(len(body)))
	x.writer.WriteHeader(response.StatusCode)
	if _, err := x.writer.Write(body[:len(body)/2]); err != nil {
		return // the subject closed the request; the exchange ends anyway
	}
	_ = http.NewResponseController(x.writer).Flush() // after an error the exchange ends anyway
}

// abortInjected resets the stream or the connection of the request, because a fault
// requires it. It does not return; see abort.
func (x *exchange) abortInjected(how ConnectionBreak) {
	if how == BreakConnection {
		x.abort(errInjectedBreak)
	}
	x.abort(http2.StreamError{Code: http2.ErrCodeInternal, Cause: errInjectedBreak})
}

// errInjectedBreak is the cause of a reset that a fault requires, of a stream or a connection.
var errInjectedBreak = errors.New("a fault of gauntlet broke the connection or the stream")

// listAt returns the query of a list with a resourceVersion added. The API server then answers
// with the state at this version.
//
// The API server reads this state from etcd, so the subject receives a state that existed.
func listAt(query url.Values, version history.Version) string {
	query.Set("resourceVersion", strconv.FormatUint(uint64(version), 10))
	query.Set("resourceVersionMatch", "Exact")
	return query.Encode()
}

// retryAfter returns the number of seconds in a Retry-After header. It returns nil if the
// header is missing or contains a date.
func retryAfter(header http.Header) *int {
	seconds, err := strconv.Atoi(header.Get("Retry-After"))
	if err != nil {
		return nil // client-go ignores a date too
	}
	return &seconds
}
