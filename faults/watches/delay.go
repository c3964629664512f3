// Package watches has the faults that spoil what the subject's watches tell it.
// What it believes of the cluster is then old or wrong, while its requests work.
package watches

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/faults/proxy"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Delay is the kind "watch-delay".
var Delay = faults.Kind{
	Name:      "watch-delay",
	Sentence:  "The subject learns of every change of one resource late: watch events are held for a time, in their order.",
	Healing:   "What is held is handed over at once, in its order.",
	Providers: faults.Providers,
	Params: []faults.Param{
		{Name: "resource", Sentence: "The resource whose events are held, with its group. Bookmarks and initial events are held too, or the order would break.", Bounds: "one of " + strings.Join(faults.Resources, ", ")},
		{Name: "delay", Sentence: "How long each event is held, from its arrival on.", Bounds: "1ms to 10m"},
	},
	New: NewDelay,
}

// DelayParams are the parameters of a watch-delay; [Delay] documents them.
type DelayParams struct {
	Resource string        `yaml:"resource"`
	Delay    time.Duration `yaml:"delay"`
}

const (
	delayMin = time.Millisecond
	delayMax = 10 * time.Minute
)

// NewDelay makes the fault that params describe.
func NewDelay(params faults.Params) (faults.Fault, error) {
	var p DelayParams
	if err := params.Decode(&p); err != nil {
		return nil, err
	}
	if err := faults.OneOf(params, "resource", p.Resource, faults.Resources); err != nil {
		return nil, err
	}
	if p.Delay == 0 {
		return nil, params.Errorf("delay", "not given; expected %v to %v", delayMin, delayMax)
	}
	if p.Delay < delayMin || p.Delay > delayMax {
		return nil, params.Errorf("delay", "%v is out of bounds; expected %v to %v", p.Delay, delayMin, delayMax)
	}
	return &delay{params: p, streams: map[uint64]bool{}}, nil
}

// delay is a watch-delay in force.
type delay struct {
	params DelayParams
	env    *faults.Env
	remove func()

	mu      sync.Mutex
	streams map[uint64]bool // those that an event was held on, by request
	events  int
}

func (d *delay) Inject(_ context.Context, env *faults.Env) error {
	d.env = env
	d.remove = env.Proxy.OnWatchEvent(d.decide)
	return nil
}

func (d *delay) Heal(context.Context) error {
	if d.remove != nil {
		d.remove()
	}
	return nil
}

func (d *delay) Tally() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return fmt.Sprintf("held %d events on %d streams", d.events, len(d.streams))
}

// decide records the first event held on each stream; the deliveries say how
// long every one was held.
func (d *delay) decide(stream *history.Request, event *history.Delivery) *proxy.WatchEffect {
	if stream.Resource != d.params.Resource {
		return nil
	}
	d.mu.Lock()
	d.events++
	first := !d.streams[stream.ID]
	d.streams[stream.ID] = true
	d.mu.Unlock()
	if first {
		ref := event.Object.Ref // the event is the proxy's
		d.env.Report.Fired(stream.ID, &ref, fmt.Sprintf("holds the events of this watch for %v each", d.params.Delay))
	}
	return &proxy.WatchEffect{Hold: d.params.Delay}
}
