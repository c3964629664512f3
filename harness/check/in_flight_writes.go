package check

import (
	"maps"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// inFlightWrites contains the write requests of the controllers under test that have no response
// yet, by request ID. When the response arrives, a checker gets the request with its body from this
// map. It cannot use the type call instead, which does not store the body.
type inFlightWrites map[uint64]*history.Request

// observe reads the next record of the history. If the record is a successful response with the
// written object, observe returns the request that was answered. Otherwise it returns nil.
func (writes inFlightWrites) observe(r *history.Record) *history.Request {
	request := writes.answered(r)
	if request == nil || !r.Response.OK() || r.Response.Object == nil {
		return nil
	}
	return request
}

// answered reads the next record of the history. If the record is a response to a write, answered
// returns the request. Otherwise it returns nil.
func (writes inFlightWrites) answered(r *history.Record) *history.Request {
	switch {
	case r.Request != nil && r.Request.IsWrite():
		writes[r.Request.ID] = r.Request
	case r.Response != nil:
		request := writes[r.Response.ID]
		delete(writes, r.Response.ID)
		return request
	case processStarts(r): // the requests of the former process get no response
		maps.DeleteFunc(writes, func(_ uint64, request *history.Request) bool { return request.Subject == r.Process.Name })
	}
	return nil
}

// to reports whether a write to the object is in flight.
func (writes inFlightWrites) to(o *history.Ref) bool {
	for _, w := range writes {
		if w.Resource == o.Resource && w.Namespace == o.Namespace && w.Name == o.Name {
			return true
		}
	}
	return false
}
