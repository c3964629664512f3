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

// triggerDispatcher stands between the witnesses and the history, and calls out the moments
// that faults wait for. What the subject says or hears, and what users do, goes
// on only when the fault whose moment it is has begun, or ended: between a write
// and its answer, say, there is room for a fault.
type triggerDispatcher struct {
	recorder *history.Recorder
	clock    clock.WithTicker

	mu            sync.Mutex
	objects       *trigger.Objects
	subscriptions []*subscription
}

// recordHoldMax bounds how long a record waits for a fault to begin or end. It is
// reached only when something is broken, which the run then says.
const recordHoldMax = 5 * time.Second

// subscription is a moment that is waited for.
type subscription struct {
	matcher     *trigger.Matcher
	matched     chan trigger.Match // has one once it has come
	released    chan struct{}      // closed when nobody needs to be kept any more
	releaseOnce sync.Once
}

func newTriggerDispatcher(recorder *history.Recorder, clock clock.WithTicker) *triggerDispatcher {
	return &triggerDispatcher{recorder: recorder, clock: clock, objects: trigger.NewObjects()}
}

// Append records what happened, and returns when whoever waited for it has acted.
func (l *triggerDispatcher) Append(record history.Record) {
	l.recorder.Append(record)
	for _, e := range l.matching(&record) {
		if canWait(&record) {
			l.waitReleased(e)
		}
	}
}

// matching returns the moments that come with a record.
func (l *triggerDispatcher) matching(record *history.Record) []*subscription {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.objects.Observe(record)
	var came []*subscription
	l.subscriptions = slices.DeleteFunc(l.subscriptions, func(e *subscription) bool {
		cause, ok := e.matcher.Observe(record, l.objects)
		if ok {
			e.matched <- cause
			came = append(came, e)
		}
		return ok
	})
	return came
}

// canWait reports whether what a record tells of can wait: the truth cannot.
func canWait(r *history.Record) bool {
	return r.Request != nil || r.Response != nil || r.Delivery != nil || r.Step != nil
}

func (l *triggerDispatcher) waitReleased(e *subscription) {
	timer := l.clock.NewTimer(recordHoldMax)
	defer timer.Stop()
	select {
	case <-e.released:
	case <-timer.C():
	}
}

// subscribe begins to wait for a moment; nil never comes. What is expected anew must
// come again.
func (l *triggerDispatcher) subscribe(moment *scenario.Trigger, kin trigger.OwnerLookup, anew bool) *subscription {
	e := &subscription{matched: make(chan trigger.Match, 1), released: make(chan struct{})}
	if moment == nil {
		return e
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	e.matcher = trigger.New(*moment, kin, l.objects, anew)
	l.subscriptions = append(l.subscriptions, e)
	return e
}

// unsubscribe ends the waiting, and lets go on what the moment has kept. It may be
// called again.
func (l *triggerDispatcher) unsubscribe(e *subscription) {
	e.releaseOnce.Do(func() { close(e.released) })
	l.mu.Lock()
	defer l.mu.Unlock()
	l.subscriptions = slices.DeleteFunc(l.subscriptions, func(other *subscription) bool { return other == e })
}
