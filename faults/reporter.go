package faults

import (
	"fmt"
	"sync"

	"github.com/kube-gauntlet/gauntlet/faults/proxy"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/trigger"
)

// Reporter records what one fault of a scenario does.
type Reporter struct {
	recorder proxy.Recorder
	index    int
	name     string
	once     sync.Once // for the record of healing
	// tolerateOutage: what fails for want of a control plane is not recorded.
	tolerateOutage bool
}

// NewReporter makes the reporter of the fault at a place in its scenario,
// counted from 0, of the kind of the given name.
func NewReporter(recorder proxy.Recorder, index int, name string) *Reporter {
	return &Reporter{recorder: recorder, index: index, name: name}
}

// String names the fault: its kind, and its place counted from 0.
func (r *Reporter) String() string { return fmt.Sprintf("fault %d (%s)", r.index, r.name) }

// Name is the fault's kind.
func (r *Reporter) Name() string { return r.name }

// Fired records that the fault did something: to the request of the given ID,
// or 0, and to an object, or nil. It may be called from any goroutine.
func (r *Reporter) Fired(request uint64, object *history.Ref, detail string) {
	r.record(history.Fault{Event: history.FaultFired, Request: request, Object: object, Detail: detail})
}

// TolerateOutage says that other faults of the run put the control plane out of order: that
// it is so is from here on no failure of this one.
func (r *Reporter) TolerateOutage() { r.tolerateOutage = true }

// Failed records that the fault could not do what it should, to an object or nil.
func (r *Reporter) Failed(object *history.Ref, err error) {
	if r.tolerateOutage && cluster.Unavailable(err) {
		return
	}
	r.record(history.Fault{Event: history.FaultFailed, Object: object, Detail: err.Error()})
}

// injected records that the fault may fire from here on, and the moment that it
// waited for.
func (r *Reporter) injected(cause trigger.Match) {
	r.record(history.Fault{Event: history.FaultInjected, Request: cause.Request, Object: cause.Object, Detail: cause.Description})
}

func (r *Reporter) healed(tally string) {
	r.once.Do(func() { r.record(history.Fault{Event: history.FaultHealed, Detail: tally}) })
}

func (r *Reporter) record(fault history.Fault) {
	fault.Index, fault.Name = r.index, r.name
	r.recorder.Append(history.Record{Fault: &fault})
}
