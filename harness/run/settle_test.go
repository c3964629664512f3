package run

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// fakeObserver catches up as often as it has an answer for.
type fakeObserver struct{ answers []func() error }

func (w *fakeObserver) CatchUp(context.Context) error {
	answer := w.answers[0]
	w.answers = w.answers[1:]
	return answer()
}

func (w *fakeObserver) Stop() {}

// TestSettleGaps: what a witness has not seen when settling begins may still come;
// what it has not seen by the end is a gap, unless the run was broken off meanwhile.
func TestSettleGaps(t *testing.T) {
	seen, late := func() error { return nil }, func() error { return errors.New("web has not been seen") }
	for _, test := range []struct {
		name        string
		first, last func() error
		breaks      int // the catch-up during which the subject dies; 0 is none
		want        []string
	}{
		{name: "all is seen", first: seen, last: seen, want: []string{"settle", "quiet", "end"}},
		{name: "late", first: late, last: seen, want: []string{"settle", "quiet", "end"}},
		{name: "never", first: late, last: late, want: []string{"settle", "quiet", "gap at the end: web has not been seen", "end"}},
		{name: "broken off at first", first: late, breaks: 1, want: []string{"settle"}},
		{name: "broken off at last", first: seen, last: late, breaks: 2, want: []string{"settle", "quiet"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			breaking := func(n int, answer func() error) func() error {
				return func() error {
					if n == test.breaks {
						cancel()
					}
					return answer()
				}
			}
			var told []string
			recorder, err := history.Create(filepath.Join(t.TempDir(), "history.jsonl"), history.Start{}, clock.RealClock{}, func(r *history.Record) {
				switch {
				case r.Phase != nil:
					told = append(told, string(r.Phase.Name))
				case r.Gap != nil:
					told = append(told, fmt.Sprintf("gap %s", r.Gap.Detail))
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			s := &testEnvironment{
				Options:  &Options{Clock: clock.RealClock{}, Scenario: &scenario.Scenario{}},
				recorder: recorder, monitor: newMonitor(),
				observer: &fakeObserver{answers: []func() error{breaking(1, test.first), breaking(2, test.last)}},
			}
			s.Scenario.Settle.Within, s.Scenario.Settle.Quiet = time.Minute, time.Millisecond
			for i, resource := range requiredWatches {
				id := uint64(i + 1)
				s.monitor.observe(&history.Record{Request: &history.Request{ID: id, Verb: "watch", Resource: resource}})
				s.monitor.observe(&history.Record{Response: &history.Response{ID: id, Code: 200}})
			}
			if err := s.settle(ctx); (err != nil) != (test.breaks > 0) {
				t.Errorf("error %v", err)
			}
			if err := recorder.Close(); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(test.want, told); diff != "" {
				t.Errorf("phases and gaps (-want +got):\n%s", diff)
			}
		})
	}
}
