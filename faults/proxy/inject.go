package proxy

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

// This file applies the effects of faults to requests and responses.

// delay waits for the given time, or until the fault is removed. It returns an error if the
// subject cancels the request.
func (x *exchange) delay(d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := x.proxy.clock.NewTimer(d)
	defer timer.Stop()
	for {
		faults := x.proxy.requestFaults.current.Load() // loaded before isRemoved, so that no removal is missed
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

// refuse answers the request with an error in place of the API server. The record of
// the response says whether the API server received the request, and with which status
// it answered.
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
	x.conn.delivering.RLock()
	x.append(history.Record{Response: &record})
	err = writeStatus(x.writer, contentType, body, status)
	x.conn.delivering.RUnlock()
	if err != nil {
		x.abort(err)
	}
}

// loseResponse reads the API server's response and gives the subject the replacement
// that the fault requires; see [LostResponse].
func (x *exchange) loseResponse(response *http.Response) {
	body, err := io.ReadAll(io.LimitReader(response.Body, responseBytesMax))
	if err != nil { // the response is lost without the fault
		x.recordNoResponse(true, response.StatusCode)
		x.abort(fmt.Errorf("reading a response: %w", err))
	}
	loss := x.effect.Lose
	if err := x.delay(loss.After); err != nil {
		x.recordNoResponse(true, response.StatusCode)
		x.abort(err)
	}
	// A decoding error leaves the object out of the record. It is not a gap, because the
	// subject does not receive the response.
	content, _ := x.target.readResponse(encodingOf(response.Header.Get("Content-Type")), body)
	x.proxy.owners.set(content.object)
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

// writeHalf writes the first half of a response with the Content-Length of the whole.
func (x *exchange) writeHalf(response *http.Response, body []byte) {
	copyHeader(x.writer.Header(), response.Header)
	x.writer.Header().Set("Content-Length", strconv.Itoa(len(body)))
	x.writer.WriteHeader(response.StatusCode)
	if _, err := x.writer.Write(body[:len(body)/2]); err != nil {
		return // the subject closed the request; the exchange ends anyway
	}
	_ = http.NewResponseController(x.writer).Flush() // as above
}

// abortInjected ends the exchange without a response, because a fault requires it. It
// does not return.
func (x *exchange) abortInjected(how ConnectionBreak) {
	if how == BreakConnection {
		x.abort(errInjectedBreak)
	}
	x.abort(http2.StreamError{Code: http2.ErrCodeInternal, Cause: errInjectedBreak})
}

// errInjectedBreak is the error in the record of a stream or connection that a fault
// breaks.
var errInjectedBreak = errors.New("broken by an injected fault")

// listAt changes the query of a list so that the API server answers with an older
// resourceVersion. The data comes from etcd, so the subject receives a state that
// existed.
func listAt(query url.Values, version history.Version) string {
	query.Set("resourceVersion", strconv.FormatUint(uint64(version), 10))
	query.Set("resourceVersionMatch", "Exact")
	return query.Encode()
}

// retryAfter returns the seconds of a Retry-After header, nil if there are none.
func retryAfter(header http.Header) *int {
	seconds, err := strconv.Atoi(header.Get("Retry-After"))
	if err != nil {
		return nil // no header, or a date, which client-go does not read either
	}
	return &seconds
}
