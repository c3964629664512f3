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

// Dispatcher appends records to the history, and tells faults when to start. A fault may have a
// trigger, such as the third create of a pod. When a record matches the trigger, the Dispatcher
// sends the match to the goroutine that injects the fault.
//
// The matching record may be about a request, response, watch event or workload step. The
// Dispatcher then delays that operation until the fault is injected. A fault can therefore act,
// for example, between a write and its response.
type Dispatcher struct {
	recorder *history.Recorder
	clock    clock.WithTicker

	mu            sync.Mutex
	objects       *trigger.Objects // the objects in the records so far, which some triggers need
	subscriptions []*Subscription  // the subscriptions with a trigger that has not matched yet
}

// recordHoldMax limits how long Append delays the controllers under test or the workload while a
// fault is being injected. After this time, the delayed operation continues in any case.
const recordHoldMax = 5 * time.Second

// Subscription lets one fault wait for the first record that matches the fault's trigger.
type Subscription struct {
	matcher     *trigger.Matcher
	matched     chan trigger.Match // receives the first match, the only one; has capacity 1
	released    chan struct{}      // closed by Unsubscribe; Append then returns
	releaseOnce sync.Once          // makes Unsubscribe close released only once
}

// NewDispatcher returns a Dispatcher that appends its records to the history that recorder writes.
func NewDispatcher(recorder *history.Recorder, clock clock.WithTicker) *Dispatcher {
	return &Dispatcher{recorder: recorder, clock: clock, objects: trigger.NewObjects()}
}

// Append appends a record to the history. If the record matches the triggers of some faults,
// Append sends the matches to the subscriptions of these faults, which starts the faults.
//
// The recorded operation, such as the sending of a request, continues only after Append returns.
// Append therefore waits until these faults are injected, but at most [recordHoldMax] for each. It
// does not wait for something that cannot be delayed, such as a commit in etcd (see canWait).
func (d *Dispatcher) Append(record history.Record) {
	d.recorder.Append(record)
	for _, sub := range d.matching(&record) {
		if canWait(&record) {
			d.waitReleased(sub)
		}
	}
}

// matching returns the subscriptions with a trigger that the record matches. It sends the match to
// each of these subscriptions, and removes the subscriptions from the Dispatcher.
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

// canWait reports whether Append may delay the operation that a record describes. Requests,
// responses, watch events and workload steps can be delayed. A commit cannot, because etcd has
// already committed the state.
func canWait(r *history.Record) bool {
	return r.Request != nil || r.Response != nil || r.Delivery != nil || r.Step != nil
}

// waitReleased waits until another goroutine has injected the subscription's fault and called
// Unsubscribe(sub). It waits at most [recordHoldMax].
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
// A trigger may wait for a condition of an object that is already true when Subscribe is called. If
// requireChange is true, such a trigger matches only after the condition has become false and then
// true again.
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

// Unsubscribe ends a subscription, so that Append no longer waits for the fault. The caller calls
// Unsubscribe when the fault is injected, or will not be injected. A second call does nothing.
func (d *Dispatcher) Unsubscribe(sub *Subscription) {
	sub.releaseOnce.Do(func() { close(sub.released) })
	d.mu.Lock()
	defer d.mu.Unlock()
	d.subscriptions = slices.DeleteFunc(d.subscriptions, func(other *Subscription) bool { return other == sub })
}

// Matched returns a channel that receives the first match of the trigger, so that the caller can
// inject the fault. The channel is never closed.
func (s *Subscription) Matched() <-chan trigger.Match { return s.matched }
