package main

import (
	"context"
	"errors"
	"testing"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// TestUntilKnown repeats runs with the given verdicts. An empty verdict means that the run
// could not start.
func TestUntilKnown(t *testing.T) {
	tests := []struct {
		name     string
		verdicts []check.Verdict
		times    int
		runs     int
	}{
		{"once is enough unless more is asked for", []check.Verdict{check.Unknown, check.Pass}, 1, 1},
		{"what is unknown is run again", []check.Verdict{check.Unknown, check.Pass}, 2, 2},
		{"no more often than asked for", []check.Verdict{check.Unknown, check.Unknown, check.Pass}, 2, 2},
		{"a pass stands", []check.Verdict{check.Pass, check.Fail}, 3, 1},
		{"a failure stands", []check.Verdict{check.Fail, check.Pass}, 3, 1},
		{"so does one that follows", []check.Verdict{check.Unknown, check.Fail, check.Pass}, 3, 2},
		{"what cannot begin is not tried again", []check.Verdict{"", check.Pass}, 3, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			runs := 0
			again := retryUnknown(func(context.Context) (*reports.Run, error) {
				runs++
				verdict := test.verdicts[runs-1]
				if verdict == "" {
					return nil, errors.New("no room")
				}
				return &reports.Run{Verdict: verdict}, nil
			}, test.times, func(string) {})
			checked, _ := again(t.Context())
			if runs != test.runs {
				t.Fatalf("%d runs, want %d", runs, test.runs)
			}
			var verdict check.Verdict
			if checked != nil {
				verdict = checked.Verdict
			}
			if want := test.verdicts[runs-1]; verdict != want {
				t.Errorf("it came to %q, want %q", verdict, want)
			}
		})
	}
}

func TestInterruptedIsNotRunAgain(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	runs := 0
	again := retryUnknown(func(context.Context) (*reports.Run, error) {
		runs++
		interrupt()
		return &reports.Run{Verdict: check.Unknown}, nil
	}, 3, func(string) {})
	if _, err := again(ctx); err != nil || runs != 1 {
		t.Errorf("%d runs, %v; want 1", runs, err)
	}
}
