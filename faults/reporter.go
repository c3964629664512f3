package faults

import (
	"fmt"
	"sync"

	"github.com/kube-gauntlet/gauntlet/faults/proxy"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/trigger"
)

// Reporter writes the history records of one fault.
type Reporter struct {
	recorder proxy.Recorder
	index    int
	name     string
	once     sync.Once // for the record of the healing
	// tolerateOutage omits failures that an unavailable control plane causes.
	tolerateOutage bool
}

// NewReporter returns the reporter of the fault at the given index of its scenario, counted
// from 0. The name is that of the fault type.
func NewReporter(recorder proxy.Recorder, index int, name string) *Reporter {
	return &Reporter{recorder: recorder, index: index, name: name}
}

// String identifies the fault by its index, counted from 0, and its type.
func (r *Reporter) String() string { return fmt.Sprintf("fault %d (%s)", r.index, r.name) }

// Name returns the name of the fault type.
func (r *Reporter) Name() string { return r.name }

// Fired records one effect of the fault. request is the ID of the affected request, or 0.
// object is the affected object, or nil. Fired is safe for concurrent use.
func (r *Reporter) Fired(request uint64, object *history.Ref, detail string) {
	r.record(history.Fault{Event: history.FaultFired, Request: request, Object: object, Detail: detail})
}

// TolerateOutage makes the reporter omit failures that an unavailable control plane
// causes. The run calls it when another fault of the scenario causes an outage.
func (r *Reporter) TolerateOutage() { r.tolerateOutage = true }

// Failed records that the fault could not do its work. object is the affected object, or
// nil.
func (r *Reporter) Failed(object *history.Ref, err error) {
	if r.tolerateOutage && cluster.Unavailable(err) {
		return
	}
	r.record(history.Fault{Event: history.FaultFailed, Object: object, Detail: err.Error()})
}

// injected records that the fault may fire from now on, and the trigger match that started
// it.
func (r *Reporter) injected(match trigger.Match) {
	r.record(history.Fault{Event: history.FaultInjected, Request: match.Request, Object: match.Object, Detail: match.Description})
}

func (r *Reporter) healed(summary string) {
	r.once.Do(func() { r.record(history.Fault{Event: history.FaultHealed, Detail: summary}) })
}

func (r *Reporter) record(fault history.Fault) {
	fault.Index, fault.Name = r.index, r.name
	r.recorder.Append(history.Record{Fault: &fault})
}
