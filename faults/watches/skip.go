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

// Skip is the fault type watch-skip: the controller under test never receives one version of an
// object.
var Skip = faults.Type{
	Name: "watch-skip",
	Description: "The subject never receives one version of an object. The fault proxy holds the first matching event, and all later events of its watch, until a later event of the same object arrives. " +
		"It then ends the watch with a 410 (Expired), so that the subject lists again and finds the later version.",
	Healing: "The proxy delivers the held events at once and in order, if it has not ended the watch.",
	Params: withEventMatch("The resource of the watches, with its API group.", "1",
		faults.Param{Name: "within", Description: "The time after which the proxy delivers the held events, if no later event of the object has arrived.", Bounds: "1ms to 10m", Default: "5s"},
	),
	New:                NewSkip,
	NotGeneratedReason: "the fault needs a chosen watch event, and `gauntlet explore` chooses one; to skip events at random times, generated scenarios use watch-end with blind",
}

// SkipParams contains the parameters that a scenario sets for a watch-skip fault. The Params
// field of [Skip] documents each parameter.
type SkipParams struct {
	EventMatch
	Within time.Duration `yaml:"within"`
}

// NewSkip returns a watch-skip fault with the given parameters, or an error if a parameter is
// invalid.
func NewSkip(params faults.Params) (faults.Fault, error) {
	p := SkipParams{Within: 5 * time.Second}
	if err := params.Decode(&p); err != nil {
		return nil, err
	}
	if err := scenario.JoinErrors(p.validate(params), faults.Between(params, "within", p.Within, delayMin, delayMax)); err != nil {
		return nil, err
	}
	if p.Nth == nil {
		p.Nth = new(int)
		*p.Nth = 1
	}
	return &skip{eventSelection: eventSelection{matcher: p.EventMatch}, within: p.Within}, nil
}

// skip is a fault of type watch-skip. It makes the controller under test miss one version of an
// object.
type skip struct {
	faults.Registration
	eventSelection
	within time.Duration
	env    *faults.Env

	mu      sync.Mutex
	held    uint64      // ID of the watch whose events the fault proxy holds; 0 before the hold, and after the field ended is true
	skipped history.Ref // version of the object that the controller under test must not receive
	until   time.Time   // time at which the fault proxy stops holding the events
	ended   bool        // the fault has ended the watch
}

func (s *skip) Inject(_ context.Context, env *faults.Env) error {
	s.env = env
	s.Remove = env.Interceptor.OnWatchEvent(s.match)
	return nil
}

func (s *skip) Summary() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		return "skipped no event"
	}
	return fmt.Sprintf("skipped version %d of %s", s.skipped.Version, s.skipped)
}

// match makes the fault proxy hold the selected event, so that later events of the same watch wait
// too. When a later event of the same object arrives, match ends the watch with a 410 (Expired).
// For every event except the selected one, match returns nil.
func (s *skip) match(watch *history.Request, event *history.Delivery) *interceptor.WatchEffect {
	selected := s.selects(watch, event)
	s.mu.Lock()
	defer s.mu.Unlock()
	object := event.Object.Ref // a copy: a fault must not keep a reference to the event
	switch {
	case selected && s.held == 0 && !s.ended:
		s.held, s.skipped, s.until = watch.ID, object, s.env.Clock.Now().Add(s.within)
		return &interceptor.WatchEffect{Hold: s.within}
	case s.held != watch.ID || !s.env.Clock.Now().Before(s.until) || object.Namespace != s.skipped.Namespace || object.Name != s.skipped.Name:
		return nil
	}
	s.held, s.ended = 0, true
	id := watch.ID
	s.env.Interceptor.EndWatches(s.env.Report.Name(), interceptor.EndExpired, func(open *history.Request) bool { return open.ID == id })
	s.env.Report.Fired(id, &s.skipped, fmt.Sprintf("skipped version %d and ended the watch with a 410", s.skipped.Version))
	return nil
}
