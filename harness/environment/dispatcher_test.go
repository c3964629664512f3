package environment

import (
	"path/filepath"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

func newTestDispatcher(t *testing.T) *Dispatcher {
	t.Helper()
	recorder, err := history.Create(filepath.Join(t.TempDir(), "history.jsonl"), history.Start{}, clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := recorder.Close(); err != nil {
			t.Error(err)
		}
	})
	return NewDispatcher(recorder, clock.RealClock{})
}

// append calls Append in a new goroutine. The returned channel is closed when Append has returned.
func (d *Dispatcher) append(r history.Record) <-chan struct{} {
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		d.Append(r)
	}()
	return returned
}

// TestDispatcherHoldsRequests verifies that Append waits for Unsubscribe if a request matches a
// trigger. If a commit matches, Append must not wait.
func TestDispatcherHoldsRequests(t *testing.T) {
	create := history.Record{Request: &history.Request{ID: 1, Verb: "create", Resource: "pods"}}
	commit := history.Record{Commit: &history.Commit{Type: history.Added, Object: history.Object{Ref: history.Ref{Resource: "pods", Name: "a"}}}}
	for _, test := range []struct {
		name    string
		trigger scenario.Trigger
		record  history.Record
		held    bool
	}{
		{"request", scenario.Trigger{Request: &scenario.RequestTrigger{Verb: "create", Phase: scenario.Sent, Nth: 1}}, create, true},
		{"commit", scenario.Trigger{State: &scenario.StateTrigger{Resource: "pods", Is: scenario.Present, AtLeast: 1}}, commit, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := newTestDispatcher(t)
			sub := d.Subscribe(&test.trigger, nil, false)
			returned := d.append(test.record)
			match := <-sub.matched
			if match.Description != test.trigger.String() {
				t.Errorf("matched by %q, want %q", match.Description, test.trigger)
			}
			if test.held {
				select {
				case <-returned:
					t.Error("the record was not held")
				case <-time.After(50 * time.Millisecond):
				}
				d.Unsubscribe(sub)
			}
			<-returned
			d.Unsubscribe(sub)
			d.Unsubscribe(sub)
		})
	}
}

// TestUnsubscribe verifies that Append does not wait for a subscription after Unsubscribe. Append
// must not wait for a subscription without a trigger either.
func TestUnsubscribe(t *testing.T) {
	d := newTestDispatcher(t)
	sub := d.Subscribe(&scenario.Trigger{Step: &scenario.StepTrigger{Index: 0, At: scenario.Begun}}, nil, false)
	d.Unsubscribe(sub)
	never := d.Subscribe(nil, nil, false)
	<-d.append(history.Record{Step: &history.Step{Index: 0, Event: history.StepBegun}})
	for _, sub := range []*Subscription{sub, never} {
		select {
		case match := <-sub.matched:
			t.Errorf("matched by %+v", match)
		default:
		}
	}
}
