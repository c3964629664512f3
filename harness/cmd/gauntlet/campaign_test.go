package main

import (
	"context"
	"errors"
	"testing"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/internal/campaign"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// TestUntilKnown checks how often retryUnknown repeats a run. Each test case lists the verdicts of
// successive attempts. An empty verdict means that the attempt could not start.
func TestUntilKnown(t *testing.T) {
	tests := []struct {
		name     string
		verdicts []check.Verdict
		times    int
		runs     int
	}{
		{"a run is not repeated by default", []check.Verdict{check.Unknown, check.Pass}, 1, 1},
		{"an unknown verdict is repeated", []check.Verdict{check.Unknown, check.Pass}, 2, 2},
		{"at most the given number of runs", []check.Verdict{check.Unknown, check.Unknown, check.Pass}, 2, 2},
		{"a pass is not repeated", []check.Verdict{check.Pass, check.Fail}, 3, 1},
		{"a failure is not repeated", []check.Verdict{check.Fail, check.Pass}, 3, 1},
		{"a failure after an unknown verdict is not repeated", []check.Verdict{check.Unknown, check.Fail, check.Pass}, 3, 2},
		{"a run that cannot start is not repeated", []check.Verdict{"", check.Pass}, 3, 1},
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
				t.Fatalf("found %d runs, want %d", runs, test.runs)
			}
			var verdict check.Verdict
			if checked != nil {
				verdict = checked.Verdict
			}
			if want := test.verdicts[runs-1]; verdict != want {
				t.Errorf("the last verdict is %q, want %q", verdict, want)
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
		t.Errorf("found %d runs, error %v; want 1 run", runs, err)
	}
}

// TestConfirmFailure checks which runs are repeated, and what the result then says.
func TestConfirmFailure(t *testing.T) {
	second := &reports.Run{Verdict: check.Pass, Directory: "out/second"}
	for _, test := range []struct {
		name    string
		verdict check.Verdict
		second  *reports.Run
		want    string
	}{
		{"pass", check.Pass, second, ""},
		{"unknown", check.Unknown, second, ""},
		{"fail", check.Fail, second, "on the provider embedded, the same scenario and seed have the verdict pass (out/second)"},
		{"fail, without a second run", check.Fail, nil, "not repeated on the provider embedded: no disk"},
	} {
		t.Run(test.name, func(t *testing.T) {
			once := func(context.Context) (*reports.Run, error) {
				return &reports.Run{Verdict: test.verdict, Seed: 7}, nil
			}
			got, err := confirmFailure(once, "embedded", func(seed uint64) campaign.Attempt {
				if seed != 7 {
					t.Errorf("repeated with seed %d, want 7", seed)
				}
				return func(context.Context) (*reports.Run, error) {
					if test.second == nil {
						return nil, errors.New("no disk")
					}
					return test.second, nil
				}
			})(t.Context())
			if err != nil || got.Verdict != test.verdict || got.Repeated != test.want {
				t.Errorf("verdict %s, repeated %q, error %v; want %s, %q", got.Verdict, got.Repeated, err, test.verdict, test.want)
			}
		})
	}
}
