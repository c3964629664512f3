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

// This file does to requests and their answers what faults ask for.

// delay waits for so long, or until the fault that asks for it is removed. It
// fails when nobody waits for the answer any more.
func (x *exchange) delay(d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := x.proxy.clock.NewTimer(d)
	defer timer.Stop()
	for {
		faults := x.proxy.requestFaults.current.Load() // before isRemoved, so that no removal is missed
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

// refuse answers in the API server's place. The record says what the API server
// did about the request, if anything.
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

// loseResponse takes the API server's answer and gives the subject something else.
func (x *exchange) loseResponse(response *http.Response) {
	body, err := io.ReadAll(io.LimitReader(response.Body, responseBytesMax))
	if err != nil { // it is lost without our doing
		x.recordNoResponse(true, response.StatusCode)
		x.abort(fmt.Errorf("reading an answer: %w", err))
	}
	loss := x.effect.Lose
	if err := x.delay(loss.After); err != nil {
		x.recordNoResponse(true, response.StatusCode)
		x.abort(err)
	}
	// What cannot be read says less of what was done; the subject never sees it.
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

// writeHalf hands over an answer that promises to be whole and is not.
func (x *exchange) writeHalf(response *http.Response, body []byte) {
	copyHeader(x.writer.Header(), response.Header)
	x.writer.Header().Set("Content-Length", strconv.Itoa(len(body)))
	x.writer.WriteHeader(response.StatusCode)
	if _, err := x.writer.Write(body[:len(body)/2]); err != nil {
		return // the subject went away, as it is about to be made to
	}
	_ = http.NewResponseController(x.writer).Flush() // as above
}

// abortInjected ends the exchange without an answer. It does not return.
func (x *exchange) abortInjected(how ConnectionBreak) {
	if how == BreakConnection {
		x.abort(errInjectedBreak)
	}
	x.abort(http2.StreamError{Code: http2.ErrCodeInternal, Cause: errInjectedBreak})
}

// errInjectedBreak is why a fault breaks something off.
var errInjectedBreak = errors.New("a fault broke it off")

// listAt makes the query of a list ask for the state at an older version, which
// the API server then answers from etcd's history: nothing of it is made up.
func listAt(query url.Values, version history.Version) string {
	query.Set("resourceVersion", strconv.FormatUint(uint64(version), 10))
	query.Set("resourceVersionMatch", "Exact")
	return query.Encode()
}

// retryAfter reads for how many seconds an answer asks the client to wait; nil if
// it does not ask.
func retryAfter(header http.Header) *int {
	seconds, err := strconv.Atoi(header.Get("Retry-After"))
	if err != nil {
		return nil // none, or a date, which client-go does not read either
	}
	return &seconds
}
