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

// Dispatcher appends records to the history, and starts the faults whose trigger matches a
// record.
//
// If the record is a request, response, watch event or step, the Dispatcher delays it until the
// fault is injected or has ended. A fault can therefore act between a write and its response.
type Dispatcher struct {
	recorder *history.Recorder
	clock    clock.WithTicker

	mu            sync.Mutex
	objects       *trigger.Objects // the objects that the records so far contain
	subscriptions []*Subscription  // the subscriptions whose trigger has not matched yet
}

// recordHoldMax is the maximum time for which Append delays the subject or the workload while a
// fault is being injected. After this time, they continue in any case.
const recordHoldMax = 5 * time.Second

// Subscription waits until a record matches the trigger of one fault.
type Subscription struct {
	matcher     *trigger.Matcher
	matched     chan trigger.Match // receives the only match; has capacity 1
	released    chan struct{}      // closed by Unsubscribe; Append then returns
	releaseOnce sync.Once          // closes released
}

// NewDispatcher returns a Dispatcher that appends records to the history of recorder.
func NewDispatcher(recorder *history.Recorder, clock clock.WithTicker) *Dispatcher {
	return &Dispatcher{recorder: recorder, clock: clock, objects: trigger.NewObjects()}
}

// Append appends a record to the history, and starts the faults whose trigger matches the
// record.
//
// It then waits until each of these faults is injected or has ended, at most [recordHoldMax]
// for each. It does not wait if the event of the record has already happened (see canWait).
func (d *Dispatcher) Append(record history.Record) {
	d.recorder.Append(record)
	for _, sub := range d.matching(&record) {
		if canWait(&record) {
			d.waitReleased(sub)
		}
	}
}

// matching returns the subscriptions whose trigger matches the record. It sends the match to each
// of these subscriptions, and removes them from the Dispatcher.
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

// canWait reports whether what a record describes can be delayed until a fault is injected.
// Requests, responses, watch events and steps can. A commit cannot, because it has already
// happened.
func canWait(r *history.Record) bool {
	return r.Request != nil || r.Response != nil || r.Delivery != nil || r.Step != nil
}

// waitReleased waits until another goroutine calls Unsubscribe for sub, but at most
// [recordHoldMax].
func (d *Dispatcher) waitReleased(sub *Subscription) {
	timer := d.clock.NewTimer(recordHoldMax)
	defer timer.Stop()
	select {
	case <-sub.released:
	case <-timer.C():
	}
}

// Subscribe returns a Subscription that receives the first match of a trigger. A nil trigger
// never matches. The caller must call Unsubscribe after it has injected the fault.
//
// The condition of a state trigger may already be true when Subscribe is called. If
// requireChange is true, such a trigger matches only after its condition has become false and
// then true again.
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

// Unsubscribe ends a subscription, after the caller has injected its fault. It ends the wait of
// Append for this fault. A second Unsubscribe does nothing.
func (d *Dispatcher) Unsubscribe(sub *Subscription) {
	sub.releaseOnce.Do(func() { close(sub.released) })
	d.mu.Lock()
	defer d.mu.Unlock()
	d.subscriptions = slices.DeleteFunc(d.subscriptions, func(other *Subscription) bool { return other == sub })
}

// Matched returns a channel that receives the first match of the trigger. It is never closed.
func (s *Subscription) Matched() <-chan trigger.Match { return s.matched }
