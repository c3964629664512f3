package run

import (
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/trigger"
)

// lookout stands between the witnesses and the history, and calls out the moments
// that faults wait for. What the subject says or hears, and what users do, goes
// on only when the fault whose moment it is has begun, or ended: between a write
// and its answer, say, there is room for a fault.
type lookout struct {
	recorder *history.Recorder
	clock    clock.WithTicker

	mu       sync.Mutex
	world    *trigger.Objects
	expected []*expected
}

// holdMax bounds how long a record waits for a fault to begin or end. It is
// reached only when something is broken, which the run then says.
const holdMax = 5 * time.Second

// expected is a moment that is waited for.
type expected struct {
	watcher *trigger.Matcher
	came    chan trigger.Match // has one once it has come
	acted   chan struct{}      // closed when nobody needs to be kept any more
	once    sync.Once
}

func newLookout(recorder *history.Recorder, clock clock.WithTicker) *lookout {
	return &lookout{recorder: recorder, clock: clock, world: trigger.NewObjects()}
}

// Append records what happened, and returns when whoever waited for it has acted.
func (l *lookout) Append(record history.Record) {
	l.recorder.Append(record)
	for _, e := range l.observe(&record) {
		if keeps(&record) {
			l.keep(e)
		}
	}
}

// observe returns the moments that come with a record.
func (l *lookout) observe(record *history.Record) []*expected {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.world.Observe(record)
	var came []*expected
	l.expected = slices.DeleteFunc(l.expected, func(e *expected) bool {
		cause, ok := e.watcher.Observe(record, l.world)
		if ok {
			e.came <- cause
			came = append(came, e)
		}
		return ok
	})
	return came
}

// keeps reports whether what a record tells of can wait: the truth cannot.
func keeps(r *history.Record) bool {
	return r.Request != nil || r.Response != nil || r.Delivery != nil || r.Step != nil
}

func (l *lookout) keep(e *expected) {
	timer := l.clock.NewTimer(holdMax)
	defer timer.Stop()
	select {
	case <-e.acted:
	case <-timer.C():
	}
}

// expect begins to wait for a moment; nil never comes. What is expected anew must
// come again.
func (l *lookout) expect(moment *scenario.Trigger, kin trigger.OwnerLookup, anew bool) *expected {
	e := &expected{came: make(chan trigger.Match, 1), acted: make(chan struct{})}
	if moment == nil {
		return e
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	e.watcher = trigger.New(*moment, kin, l.world, anew)
	l.expected = append(l.expected, e)
	return e
}

// forget ends the waiting, and lets go on what the moment has kept. It may be
// called again.
func (l *lookout) forget(e *expected) {
	e.once.Do(func() { close(e.acted) })
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expected = slices.DeleteFunc(l.expected, func(other *expected) bool { return other == e })
}
