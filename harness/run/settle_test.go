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

	"github.com/kube-gauntlet/gauntlet/harness/environment"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// TestSettleGaps checks for which missing commits Settle records a gap, which marks the history as
// incomplete. Commits that are missing when Settle begins are no gap, because these commits may
// still arrive. Commits that are missing at the end are a gap, unless the run was aborted.
func TestSettleGaps(t *testing.T) {
	complete, missing := func() error { return nil }, func() error { return errors.New("services n/web at version 7") }
	for _, test := range []struct {
		name        string
		first, last func() error
		abortAt     int // number of the catch-up during which the run is canceled, counted from 1; 0 means none
		want        []string
	}{
		{name: "complete", first: complete, last: complete, want: []string{"settle", "quiet", "end"}},
		{name: "missing", first: missing, last: complete, want: []string{"settle", "quiet", "end"}},
		{name: "missing at the end", first: missing, last: missing, want: []string{"settle", "quiet", "gap missing at the end of the run: services n/web at version 7", "end"}},
		{name: "aborted at the first catch-up", first: missing, abortAt: 1, want: []string{"settle"}},
		{name: "aborted at the last catch-up", first: complete, last: missing, abortAt: 2, want: []string{"settle", "quiet"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			aborting := func(n int, answer func() error) func() error {
				return func() error {
					if n == test.abortAt {
						cancel()
					}
					return answer()
				}
			}
			var recorded []string
			recorder, err := history.Create(filepath.Join(t.TempDir(), "history.jsonl"), history.Start{}, clock.RealClock{}, func(r *history.Record) {
				switch {
				case r.Phase != nil:
					recorded = append(recorded, string(r.Phase.Name))
				case r.Gap != nil:
					recorded = append(recorded, fmt.Sprintf("gap %s", r.Gap.Detail))
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			answers := []func() error{aborting(1, test.first), aborting(2, test.last)}
			s := &Session{
				Options:     &Options{Clock: clock.RealClock{}, Scenario: &scenario.Scenario{}},
				Environment: &environment.Environment{Recorder: recorder},
				monitor:     newMonitor(),
				phase:       sessionChaos,
				catchUp: func(context.Context) error {
					answer := answers[0]
					answers = answers[1:]
					return answer()
				},
			}
			s.Scenario.Settle.Within, s.Scenario.Settle.Quiet = time.Minute, time.Millisecond
			if err := s.Settle(ctx); (err != nil) != (test.abortAt > 0) {
				t.Errorf("error %v", err)
			}
			if err := recorder.Close(); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(test.want, recorded); diff != "" {
				t.Errorf("phases and gaps (-want +got):\n%s", diff)
			}
		})
	}
}
