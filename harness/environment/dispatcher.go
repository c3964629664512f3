package environment

import (
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/trigger"
)

// Dispatcher appends records to the history and notifies faults whose trigger
// matches. It holds a matching record of the subject or the workload until the fault
// has been injected or has ended. A fault can thus act between a write and its
// response.
type Dispatcher struct {
	recorder *history.Recorder
	clock    clock.WithTicker

	mu            sync.Mutex
	objects       *trigger.Objects
	subscriptions []*Subscription
}

// recordHoldMax bounds the time for which the dispatcher holds a record. The subject or the
// workload then continues, even if the fault is not injected yet.
const recordHoldMax = 5 * time.Second

// Subscription waits for one trigger to match.
type Subscription struct {
	matcher     *trigger.Matcher
	matched     chan trigger.Match // capacity 1
	released    chan struct{}      // closed when held records may continue
	releaseOnce sync.Once
}

// NewDispatcher returns a Dispatcher that appends records to a history.
func NewDispatcher(recorder *history.Recorder, clock clock.WithTicker) *Dispatcher {
	return &Dispatcher{recorder: recorder, clock: clock, objects: trigger.NewObjects()}
}

// Append appends a record to the history and notifies the faults whose trigger matches it.
// If the subject or the workload can wait (see canWait), Append returns only after these
// faults have been injected or have ended.
func (d *Dispatcher) Append(record history.Record) {
	d.recorder.Append(record)
	for _, sub := range d.matching(&record) {
		if canWait(&record) {
			d.waitReleased(sub)
		}
	}
}

// matching returns the subscriptions whose trigger matches with the record, and removes
// them.
func (d *Dispatcher) matching(record *history.Record) []*Subscription {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.objects.Observe(record)
	var matched []*Subscription
	d.subscriptions = slices.DeleteFunc(d.subscriptions, func(sub *Subscription) bool {
		match, ok := sub.matcher.Observe(record, d.objects)
		if ok {
			sub.matched <- match
			matched = append(matched, sub)
		}
		return ok
	})
	return matched
}

// canWait reports whether the event of a record can be delayed. Commits cannot, because
// they have already happened.
func canWait(r *history.Record) bool {
	return r.Request != nil || r.Response != nil || r.Delivery != nil || r.Step != nil
}

func (d *Dispatcher) waitReleased(sub *Subscription) {
	timer := d.clock.NewTimer(recordHoldMax)
	defer timer.Stop()
	select {
	case <-sub.released:
	case <-timer.C():
	}
}

// Subscribe returns a subscription for a trigger; the subscription of a nil trigger never
// matches. With requireChange, a state trigger matches only after its condition has been
// false.
func (d *Dispatcher) Subscribe(when *scenario.Trigger, ownerOf trigger.OwnerLookup, requireChange bool) *Subscription {
	sub := &Subscription{matched: make(chan trigger.Match, 1), released: make(chan struct{})}
	if when == nil {
		return sub
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	sub.matcher = trigger.New(*when, ownerOf, d.objects, requireChange)
	d.subscriptions = append(d.subscriptions, sub)
	return sub
}

// Unsubscribe ends a subscription and releases its held record. Further calls do
// nothing.
func (d *Dispatcher) Unsubscribe(sub *Subscription) {
	sub.releaseOnce.Do(func() { close(sub.released) })
	d.mu.Lock()
	defer d.mu.Unlock()
	d.subscriptions = slices.DeleteFunc(d.subscriptions, func(other *Subscription) bool { return other == sub })
}

// Matched returns a channel that receives the match of the trigger.
func (s *Subscription) Matched() <-chan trigger.Match { return s.matched }
