package run

import (
	"path/filepath"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

func newTestDispatcher(t *testing.T) *triggerDispatcher {
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
	return newTriggerDispatcher(recorder, clock.RealClock{})
}

// append appends a record, and returns a channel that is closed when that has returned.
func (l *triggerDispatcher) append(r history.Record) <-chan struct{} {
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		l.Append(r)
	}()
	return returned
}

// TestDispatcherHoldsRequests: the subject's request waits until whoever waited for it has
// acted; the truth does not wait.
func TestDispatcherHoldsRequests(t *testing.T) {
	create := history.Record{Request: &history.Request{ID: 1, Verb: "create", Resource: "pods"}}
	truth := history.Record{Commit: &history.Commit{Type: history.Added, Object: history.Object{Ref: history.Ref{Resource: "pods", Name: "a"}}}}
	for _, test := range []struct {
		name   string
		moment scenario.Trigger
		record history.Record
		keeps  bool
	}{
		{"request", scenario.Trigger{Request: &scenario.RequestTrigger{Verb: "create", Phase: scenario.Sent, Nth: 1}}, create, true},
		{"truth", scenario.Trigger{State: &scenario.StateTrigger{Resource: "pods", Is: scenario.Present, AtLeast: 1}}, truth, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newTestDispatcher(t)
			e := l.subscribe(&test.moment, nil, false)
			returned := l.append(test.record)
			cause := <-e.matched
			if cause.Description != test.moment.String() {
				t.Errorf("came by %q, want %q", cause.Description, test.moment)
			}
			if test.keeps {
				select {
				case <-returned:
					t.Error("the record did not wait")
				case <-time.After(50 * time.Millisecond):
				}
				l.unsubscribe(e)
			}
			<-returned
			l.unsubscribe(e)
			l.unsubscribe(e)
		})
	}
}

// TestUnsubscribe: what is waited for no more keeps nothing, nor does what has
// no moment.
func TestUnsubscribe(t *testing.T) {
	l := newTestDispatcher(t)
	e := l.subscribe(&scenario.Trigger{Step: &scenario.StepTrigger{Index: 0, At: scenario.Begun}}, nil, false)
	l.unsubscribe(e)
	never := l.subscribe(nil, nil, false)
	<-l.append(history.Record{Step: &history.Step{Index: 0, Event: history.StepBegun}})
	for _, e := range []*subscription{e, never} {
		select {
		case cause := <-e.matched:
			t.Errorf("came by %+v", cause)
		default:
		}
	}
}
