package check

import (
	"maps"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// answeredWrites contains the subject's write requests that have no response yet, by request ID.
// When the response arrives, a checker gets the request with its body from this map. The type
// call, which describes requests to checkers, does not store the body.
type answeredWrites map[uint64]*history.Request

// observe reads the next record of the history. The record may be a successful response that
// contains the written object. observe then returns the request for which this response arrived.
// Otherwise it returns nil.
func (writes answeredWrites) observe(r *history.Record) *history.Request {
	switch {
	case r.Request != nil && r.Request.IsWrite():
		writes[r.Request.ID] = r.Request
	case r.Response != nil:
		request := writes[r.Response.ID]
		delete(writes, r.Response.ID)
		if request != nil && r.Response.OK() && r.Response.Object != nil {
			return request
		}
	case processStarts(r): // the requests of the former process get no response
		maps.DeleteFunc(writes, func(_ uint64, request *history.Request) bool { return request.Subject == r.Process.Name })
	}
	return nil
}
