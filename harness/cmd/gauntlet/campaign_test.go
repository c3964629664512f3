package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/internal/campaign"
	"github.com/kube-gauntlet/gauntlet/harness/run"
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

// TestCampaignInterrupted checks the exit status, the output and the reports of a campaign that is
// interrupted during its second run.
func TestCampaignInterrupted(t *testing.T) {
	for _, test := range []struct {
		name     string
		first    check.Verdict
		wantCode int
		want     string // text on standard output
	}{
		{"after a run that passed", check.Pass, exitUnknown, "interrupted after 1 of 3 runs\n\n1 run, all passed\n"},
		{"after a run that failed", check.Fail, exitFail, "interrupted after 1 of 3 runs\n\n1 run, 1 did not pass\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			out := t.TempDir()
			attempts := []campaign.Attempt{
				func(context.Context) (*reports.Run, error) {
					return &reports.Run{Verdict: test.first, Scenario: "x", Seed: 1, Directory: filepath.Join(out, "first")}, nil
				},
				discardInterrupted(func(context.Context) (*reports.Run, error) {
					interrupt()
					second := filepath.Join(out, "second")
					return &reports.Run{Verdict: check.Unknown, Directory: second}, errors.Join(errors.New("interrupted"), os.Mkdir(second, 0o755))
				}),
			}
			var code int
			var stdout bytes.Buffer
			f := campaignFlags{runs: runFlags{out: out, provider: providers.Embedded, parallel: 1}}
			cmd := &cobra.Command{RunE: func(cmd *cobra.Command, _ []string) (err error) {
				code, err = f.runCampaign(cmd, "seeds", campaign.Options{Series: seriesOf(attempts), Planned: 3})
				return err
			}, SilenceErrors: true, SilenceUsage: true}
			cmd.SetOut(&stdout)
			cmd.SetArgs(nil)
			err := cmd.ExecuteContext(ctx)
			if got := exitCode(code, err); got != test.wantCode || err == nil || err.Error() != "interrupted after 1 of 3 runs" {
				t.Errorf("exit status %d, error %v; want %d and that the campaign was interrupted", got, err, test.wantCode)
			}
			if !strings.HasPrefix(stdout.String(), test.want) {
				t.Errorf("standard output %q; want it to begin with %q", stdout.String(), test.want)
			}
			written, err := filepath.Glob(filepath.Join(out, "seeds-*", "verdicts.json"))
			if err != nil || len(written) != 1 {
				t.Fatalf("%d reports, error %v; want 1", len(written), err)
			}
			if text, err := os.ReadFile(written[0]); err != nil || !strings.Contains(string(text), "interrupted after 1 of 3 runs") {
				t.Errorf("error %v, verdicts %s; want that the campaign was interrupted", err, text)
			}
			if _, err := os.Stat(filepath.Join(out, "second")); !os.IsNotExist(err) {
				t.Errorf("the directory of the interrupted run: error %v; want that it does not exist", err)
			}
		})
	}
}

// TestDiscardInterrupted checks which run directories are removed after an interruption.
func TestDiscardInterrupted(t *testing.T) {
	for _, test := range []struct {
		name      string
		verdict   check.Verdict // "" if the history of the run did not begin
		interrupt bool
		err       error
		kept      bool
	}{
		{"interrupted", check.Unknown, true, errors.New("interrupted"), false},
		{"interrupted before the history began", "", true, errors.New("interrupted"), false},
		{"interrupted after a check failed", check.Fail, true, errors.New("interrupted"), true},
		{"completed in spite of the interruption", check.Pass, true, nil, true},
		{"aborted for another reason", check.Unknown, false, errors.New("disk full"), true},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			dir := t.TempDir()
			result, err := discardInterrupted(func(context.Context) (*reports.Run, error) {
				if test.interrupt {
					interrupt()
				}
				if test.verdict == "" {
					return nil, &run.UnrecordedError{Directory: dir, Err: test.err}
				}
				return &reports.Run{Verdict: test.verdict, Directory: dir}, test.err
			})(ctx)
			if (err == nil) != (test.err == nil) || (result == nil) != (test.verdict == "") {
				t.Errorf("result %v, error %v; want those of the run", result, err)
			}
			if _, err := os.Stat(dir); (err == nil) != test.kept {
				t.Errorf("the run directory: error %v; want it kept: %t", err, test.kept)
			}
		})
	}
}
