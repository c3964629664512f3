// Package watches contains the faults that change watches and lists of the subject, the
// controllers under test. These faults make the subject's informer caches outdated, while the
// subject's other requests work.
package watches

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/faults/interceptor"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// Delay is the fault type watch-delay: the fault proxy delays each watch event by a fixed
// time.
var Delay = faults.Type{
	Name:        "watch-delay",
	Description: "The fault proxy delays the events of the subject's watches of one resource. If other parameters are set, it delays only the matching events, and later events of the same watch wait behind them. The order of the events of a watch does not change.",
	Healing:     "The proxy delivers the held events at once and in order.",
	Params: withEventMatch("The resource of the watches, with its API group. Bookmarks and initial events are held too, so that the order is kept.", "every match",
		faults.Param{Name: "delay", Description: "The time for which each event is held after its arrival.", Bounds: "1ms to 10m"},
	),
	New:    NewDelay,
	Sample: sampleDelay,
}

// DelayParams contains the parameters that a scenario sets for a watch-delay fault. The Params
// field of [Delay] documents each parameter.
type DelayParams struct {
	EventMatch
	Delay time.Duration `yaml:"delay"`
}

const (
	delayMin = time.Millisecond
	delayMax = 10 * time.Minute
)

// NewDelay returns a watch-delay fault with the given parameters, or an error if a
// parameter is invalid.
func NewDelay(params faults.Params) (faults.Fault, error) {
	p := DelayParams{Delay: faults.NotGiven}
	if err := params.Decode(&p); err != nil {
		return nil, err
	}
	if err := scenario.JoinErrors(p.validate(params), faults.Between(params, "delay", p.Delay, delayMin, delayMax)); err != nil {
		return nil, err
	}
	return newHolding(p.EventMatch, p.Delay, fmt.Sprintf("holds %s of this watch for %v", p.described(), p.Delay)), nil
}

// Stall is the fault type watch-stall: the fault proxy holds all watch events until the
// fault is healed.
var Stall = faults.Type{
	Name: "watch-stall",
	Description: "The fault proxy holds all events of the subject's watches of one resource until the fault is healed. " +
		"The subject's cache of this resource becomes outdated.",
	Healing: "The proxy delivers the held events at once and in order.",
	Params:  []faults.Param{resourceParam("The resource of the watches, with its API group. Bookmarks and initial events are held too.")},
	New:     NewStall,
	Sample:  sampleStall,
}

// StallParams contains the parameters that a scenario sets for a watch-stall fault. The Params
// field of [Stall] documents each parameter.
type StallParams struct {
	Resource string `yaml:"resource"`
}

// holdUntilHealed is the hold time of an event that the fault proxy delivers only after the fault
// is healed. No run takes that long.
const holdUntilHealed = 1000 * time.Hour

// NewStall returns a watch-stall fault with the given parameters, or an error if a
// parameter is invalid.
func NewStall(params faults.Params) (faults.Fault, error) {
	var p StallParams
	if err := params.Decode(&p); err != nil {
		return nil, err
	}
	if err := faults.Resource(params, p.Resource); err != nil {
		return nil, err
	}
	return newHolding(EventMatch{Resource: p.Resource}, holdUntilHealed, "holds the events of this watch until the fault is healed"), nil
}

// holding is a fault of type watch-delay or watch-stall. It holds the watch events that the
// embedded eventSelection selects.
type holding struct {
	faults.Registration
	eventSelection
	hold   time.Duration // time from an event's arrival at the fault proxy until its delivery
	detail string        // text for the "fired" record in the history
	env    *faults.Env

	mu      sync.Mutex
	streams map[uint64]bool // request IDs of the watches with a held event
	events  int             // number of held events
}

// newHolding returns a fault that holds watch events for the time hold. The argument match selects
// the events. The argument detail is the text for the fault's "fired" record in the history.
func newHolding(match EventMatch, hold time.Duration, detail string) *holding {
	return &holding{eventSelection: eventSelection{matcher: match}, hold: hold, detail: detail, streams: map[uint64]bool{}}
}

func (h *holding) Inject(_ context.Context, env *faults.Env) error {
	h.env = env
	h.Remove = env.Interceptor.OnWatchEvent(h.match)
	return nil
}

func (h *holding) Summary() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return fmt.Sprintf("held %s on %s", faults.Counted(h.events, "event"), faults.Counted(len(h.streams), "watch"))
}

// match makes the fault proxy hold an event if the fault's parameters select the event. Otherwise
// match returns nil, and the proxy delivers the event.
//
// match writes a "fired" record to the history only for the first held event of each watch. The
// delivery record of every event already says how long the proxy held the event.
func (h *holding) match(stream *history.Request, event *history.Delivery) *interceptor.WatchEffect {
	if !h.selects(stream, event) {
		return nil
	}
	h.mu.Lock()
	h.events++
	first := !h.streams[stream.ID]
	h.streams[stream.ID] = true
	h.mu.Unlock()
	if first {
		ref := event.Object.Ref // a copy: a fault must not keep a reference to the event
		h.env.Report.Fired(stream.ID, &ref, h.detail)
	}
	return &interceptor.WatchEffect{Hold: h.hold}
}
