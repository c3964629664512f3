package faults

import (
	"fmt"
	"sync"

	"github.com/kube-gauntlet/gauntlet/faults/interceptor"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/trigger"
)

// Reporter writes one fault's history records. The records say when the fault was injected,
// fired (changed something), failed or was healed.
type Reporter struct {
	recorder interceptor.Recorder
	index    int
	name     string
	once     sync.Once // writes the "healed" record in the history only once
	// tolerateOutage makes Failed ignore errors that an unavailable API server or etcd
	// causes.
	tolerateOutage bool
}

// NewReporter returns a Reporter that appends its records to the recorder. The argument index is
// the position of the fault in the scenario, counted from 0. The argument name is the name of the
// fault type.
func NewReporter(recorder interceptor.Recorder, index int, name string) *Reporter {
	return &Reporter{recorder: recorder, index: index, name: name}
}

// String returns the text that identifies the fault in errors, such as "fault 0 (api-error)".
// The number is the position of the fault in the scenario, counted from 0.
func (r *Reporter) String() string { return fmt.Sprintf("fault %d (%s)", r.index, r.name) }

// Name returns the name of the fault type, such as "api-error".
func (r *Reporter) Name() string { return r.name }

// Fired records that the fault changed something, for example that it refused a request. The
// argument request is the ID of the affected request, or 0 if the fault affected no request. The
// argument object is the affected object, or nil. The argument detail says what the fault changed.
// Fired is safe for concurrent use.
func (r *Reporter) Fired(request uint64, object *history.Ref, detail string) {
	r.record(history.Fault{Event: history.FaultFired, Request: request, Object: object, Detail: detail})
}

// TolerateOutage makes Failed ignore errors that an unavailable API server or etcd causes. The
// test run calls TolerateOutage if a fault of the scenario stops the API server or etcd.
func (r *Reporter) TolerateOutage() { r.tolerateOutage = true }

// Failed records that the fault could not do what the scenario asks. The argument object is the
// object that the fault tried to change, or nil. err says what failed.
func (r *Reporter) Failed(object *history.Ref, err error) {
	if r.tolerateOutage && cluster.Unavailable(err) {
		return
	}
	r.record(history.Fault{Event: history.FaultFailed, Object: object, Detail: err.Error()})
}

// injected records that the fault may fire from now on. If the fault has a trigger, the record
// also describes the trigger, and identifies the request or watch event that matched, if any.
func (r *Reporter) injected(match trigger.Match) {
	r.record(history.Fault{Event: history.FaultInjected, Request: match.Request, Object: match.Object, Detail: match.Description})
}

// healed records that the fault is healed. Only the first call writes a record. The argument
// summary says what the fault did.
func (r *Reporter) healed(summary string) {
	r.once.Do(func() { r.record(history.Fault{Event: history.FaultHealed, Detail: summary}) })
}

// record appends one event of the fault, such as fired, to the history.
func (r *Reporter) record(fault history.Fault) {
	fault.Index, fault.Name = r.index, r.name
	r.recorder.Append(history.Record{Fault: &fault})
}
