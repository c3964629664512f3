package watches

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/faults/interceptor"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// End is the fault type watch-end: the fault proxy ends watches.
var End = faults.Type{
	Name:        "watch-end",
	Description: "The fault proxy ends the subject's watches of one resource. The subject must watch again, or list again after a 410 (Expired).",
	Healing:     "The proxy stops ending watches and delivers the events that it holds.",
	Params: []faults.Param{
		resourceParam("The resource of the watches, with its API group."),
		{Name: "how", Description: "How the watches end: normally, as after the API server's watch timeout (closed); with a reset of the HTTP/2 stream (reset); with a reset of the TCP connection and all other requests on it (disconnected); or with a 410 (expired).", Bounds: "one of " + strings.Join(endings(), ", ")},
		{Name: "blind", Description: "The time for which the proxy drops the events of these watches before it ends them. After a 410, the subject learns of a deletion only because the object is missing in its next list.", Bounds: "0s to 4m", Default: "0s"},
		{Name: "every", Description: "The time from the end of the watches until the fault acts on them again.", Bounds: "10ms to 10m, or 0s", Default: "0s (once)"},
		{Name: "times", Description: "The maximum number of times that the fault ends the watches. If every is 0s, the fault ends them once, whatever times says.", Bounds: "0 to 1000000", Default: "0 (no limit, unless every is 0s)"},
	},
	New:    NewEnd,
	Sample: sampleEnd,
}

// EndParams contains the parameters that a scenario sets for a watch-end fault. The Params field
// of [End] documents each parameter.
type EndParams struct {
	Resource string        `yaml:"resource"`
	How      string        `yaml:"how"`
	Blind    time.Duration `yaml:"blind"`
	Every    time.Duration `yaml:"every"`
	Times    int           `yaml:"times"`
}

const (
	// blindMax is the longest permitted value of [EndParams.Blind]. The API server compacts etcd
	// every 5 minutes, so the subject can still resume its watch after this time.
	blindMax = 4 * time.Minute
	everyMin = 10 * time.Millisecond
	everyMax = 10 * time.Minute
	timesMax = 1_000_000
	// seekEvery is the time between two attempts to end watches, if the first attempt found no
	// open watch.
	seekEvery = 20 * time.Millisecond
)

// endings returns the permitted values of [EndParams.How], such as "expired".
func endings() []string {
	var names []string
	for _, ending := range interceptor.Endings {
		names = append(names, string(ending))
	}
	return names
}

// NewEnd returns a watch-end fault with the given parameters, or an error if a parameter is
// invalid.
func NewEnd(params faults.Params) (faults.Fault, error) {
	var p EndParams
	if err := params.Decode(&p); err != nil {
		return nil, err
	}
	errs := []error{
		faults.Resource(params, p.Resource),
		faults.OneOf(params, "how", p.How, endings()),
		faults.Between(params, "blind", p.Blind, 0, blindMax),
		faults.Between(params, "times", p.Times, 0, timesMax),
	}
	if p.Every != 0 && (p.Every < everyMin || p.Every > everyMax) {
		errs = append(errs, params.Errorf("every", "%v is out of bounds; expected %v to %v, or 0s", p.Every, everyMin, everyMax))
	}
	if err := scenario.JoinErrors(errs...); err != nil {
		return nil, err
	}
	if p.Every == 0 {
		p.Times = 1
	}
	return &end{params: p}, nil
}

// end is a fault of type watch-end. It ends the watches of one resource, once or in several
// rounds.
type end struct {
	params EndParams
	env    *faults.Env
	faults.Background

	rounds, ended atomic.Int64 // number of completed rounds, and number of watches that the fault has ended
}

func (e *end) Inject(ctx context.Context, env *faults.Env) error {
	e.env = env
	e.Begin(ctx, e.run)
	return nil
}

func (e *end) Heal(ctx context.Context) error {
	if err := e.End(ctx); err != nil {
		return fmt.Errorf("waiting until the fault has finished ending watches of %s: %w", e.params.Resource, err)
	}
	return nil
}

func (e *end) Summary() string {
	return fmt.Sprintf("ended %s in %s", faults.Counted(int(e.ended.Load()), "watch"), faults.Counted(int(e.rounds.Load()), "round"))
}

// run ends the open watches of the resource in rounds. It returns when the fault is healed, or
// after e.params.Times rounds. If e.params.Times is 0, the number of rounds is not limited.
func (e *end) run(context.Context) {
	for e.params.Times == 0 || e.rounds.Load() < int64(e.params.Times) {
		if !e.round() {
			return
		}
		e.rounds.Add(1)
		if !e.wait(e.params.Every) {
			return
		}
	}
}

// round makes the controller under test miss events. It holds watch events for the time
// e.params.Blind, and then ends the watches. The fault proxy discards the held events. If no watch
// is open, round waits until it can end one. round returns false if the fault is healed before
// round has ended a watch.
func (e *end) round() bool {
	if e.params.Blind > 0 {
		defer e.env.Interceptor.OnWatchEvent(e.holdBeforeEnd)()
		if !e.wait(e.params.Blind) {
			return false
		}
	}
	for {
		ended := e.env.Interceptor.EndWatches(e.env.Report.Name(), interceptor.WatchEnding(e.params.How), e.matches)
		for _, watch := range ended {
			e.ended.Add(1)
			e.env.Report.Fired(watch.ID, &history.Ref{Resource: watch.Resource, Namespace: watch.Namespace}, "ended the watch: "+e.params.How)
		}
		if len(ended) > 0 {
			return true
		}
		if !e.wait(seekEvery) {
			return false
		}
	}
}

// matches reports whether the fault ends a watch: whether the watch is for the resource in the
// fault's parameters.
func (e *end) matches(watch *history.Request) bool { return watch.Resource == e.params.Resource }

// holdBeforeEnd makes the fault proxy hold the events of the watches that the fault will end. The
// proxy discards the held events when the fault ends the watches. For watches of other resources,
// holdBeforeEnd returns nil, and the proxy delivers their events.
func (e *end) holdBeforeEnd(watch *history.Request, _ *history.Delivery) *interceptor.WatchEffect {
	if !e.matches(watch) {
		return nil
	}
	return &interceptor.WatchEffect{Hold: holdUntilHealed}
}

// wait waits for the time d and returns true. If the fault is healed first, it returns
// false at once.
func (e *end) wait(d time.Duration) bool {
	timer := e.env.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-e.Stopping():
		return false
	}
}
