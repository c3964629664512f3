package check

import (
	"fmt"
	"maps"
	"net/http"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// refusals counts how often the API server refused the same write of a process in a row. A process
// that retries such a write with back-off has not settled.
//
// Refusals by a fault do not count, because they end with the fault. The codes 404 (NotFound) and
// 409 (Conflict) do not count either, because a controller need not repeat the same request then.
type refusals struct {
	sent   map[uint64]*history.Request // the writes that have no response yet, by request ID
	inARow map[requestOf]int           // the number of refusals since the last success
}

// requestOf identifies the requests of a process that are equal apart from their bodies.
type requestOf struct {
	process, verb, resource, subresource, namespace, name string
}

// retriedAfter is the number of refusals in a row from which on a process retries a request.
const retriedAfter = 2

// observe reads the next record of the history.
func (f *refusals) observe(r *history.Record) {
	switch {
	case r.Request != nil && r.Request.IsWrite():
		f.sent[r.Request.ID] = r.Request
	case r.Response != nil && f.sent[r.Response.ID] != nil:
		f.answered(f.sent[r.Response.ID], r.Response)
		delete(f.sent, r.Response.ID)
	case processStarts(r):
		maps.DeleteFunc(f.sent, func(_ uint64, sent *history.Request) bool { return sent.Subject == r.Process.Name })
		maps.DeleteFunc(f.inARow, func(of requestOf, _ int) bool { return of.process == r.Process.Name })
	}
}

// answered updates the count after a response to a write.
func (f *refusals) answered(request *history.Request, response *history.Response) {
	of := requestOf{request.Subject, request.Verb, request.Resource, request.Subresource, request.Namespace, request.ObjectName()}
	switch code := response.ServerCode; {
	case response.OK():
		delete(f.inARow, of)
	case code >= http.StatusBadRequest && code != http.StatusNotFound && code != http.StatusConflict:
		f.inARow[of]++
	}
}

// retries returns a request that the process retries because the API server refuses it. It returns
// nil if there is none. Of several requests, it returns the first in alphabetical order.
func (f *refusals) retries(process string) *history.Request {
	var first *history.Request
	for of, count := range f.inARow {
		if of.process != process || count < retriedAfter {
			continue
		}
		request := &history.Request{Subject: of.process, Verb: of.verb, Resource: of.resource, Subresource: of.subresource, Namespace: of.namespace, Name: of.name}
		if first == nil || describeRequest(request) < describeRequest(first) {
			first = request
		}
	}
	return first
}

// describeRequest formats a request for a reason, such as "create pods/exec ns/web-0".
func describeRequest(r *history.Request) string {
	resource := r.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	return fmt.Sprintf("%s %s %s/%s", r.Verb, resource, r.Namespace, r.Name)
}
