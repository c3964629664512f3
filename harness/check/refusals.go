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
// Refusals before the phase settle do not count, because a fault may be their reason. The codes 404
// (NotFound) and 409 (Conflict) do not count either, because a controller need not repeat the same
// request then.
type refusals struct {
	writes inFlightWrites    // the writes that have no response yet
	inARow map[requestOf]int // the number of refusals since the last success
}

// requestOf identifies the requests of a process that are equal apart from their bodies.
type requestOf struct {
	process, verb, resource, subresource, namespace, name string
}

// retriedAfter is the number of refusals in a row after which a request counts as one that the
// process retries.
const retriedAfter = 2

// observe reads the next record of the history, and counts the refusals of writes. It forgets the
// counts when the phase settle begins, and the counts of a process when the process starts again.
func (f *refusals) observe(r *history.Record) {
	if request := f.writes.answered(r); request != nil {
		f.count(request, r.Response)
	}
	switch {
	case r.Phase != nil && r.Phase.Name == history.PhaseSettle:
		clear(f.writes)
		clear(f.inARow)
	case processStarts(r):
		maps.DeleteFunc(f.inARow, func(of requestOf, _ int) bool { return of.process == r.Process.Name })
	}
}

// count updates the number of refusals after a response to a write. The code of the API server
// counts, even if a fault replaced the response.
func (f *refusals) count(request *history.Request, response *history.Response) {
	key := requestKey(request)
	switch code := response.ServerCode; {
	case code >= http.StatusOK && code < http.StatusMultipleChoices:
		delete(f.inARow, key)
	case code >= http.StatusBadRequest && code != http.StatusNotFound && code != http.StatusConflict:
		f.inARow[key]++
	}
}

// requestKey returns the key of a request for the field refusals.inARow.
func requestKey(r *history.Request) requestOf {
	return requestOf{r.Subject, r.Verb, r.Resource, r.Subresource, r.Namespace, r.ObjectName()}
}

// retries returns a request that a process retries because the API server refuses it. The process
// is the one that sent the given write. The given write itself does not count.
//
// If there are several such requests, retries returns the first in alphabetical order. If there is
// none, it returns nil.
func (f *refusals) retries(write *history.Request) *history.Request {
	var first *history.Request
	for of, refused := range f.inARow {
		if of.process != write.Subject || of == requestKey(write) || refused < retriedAfter {
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
