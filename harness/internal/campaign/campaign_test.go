package campaign

import (
	"context"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// fakeRuns makes runs that take one minute of simulated time each. The function outcome determines
// the verdict of each run.
type fakeRuns struct {
	t     *testing.T
	clock *clocktesting.FakePassiveClock
	dir   string
	// outcome returns the verdict of a run, or "" for a run that cannot start.
	outcome func(seed uint64) check.Verdict
	seeds   []uint64
}

// series returns an iterator over the runs of the given seed and all higher seeds.
func (g *fakeRuns) series(seed uint64) iter.Seq2[Attempt, error] {
	return func(yield func(Attempt, error) bool) {
		for ; yield(func(context.Context) (*reports.Run, error) { return g.run(seed) }, nil); seed++ {
		}
	}
}

func (g *fakeRuns) run(seed uint64) (*reports.Run, error) {
	g.seeds = append(g.seeds, seed)
	g.clock.SetTime(g.clock.Now().Add(time.Minute))
	verdict := g.outcome(seed)
	if verdict == "" {
		return nil, errors.New("disk full")
	}
	run := &reports.Run{Seed: seed, Verdict: verdict, Directory: filepath.Join(g.dir, string(verdict)+time.Duration(seed).String())}
	if err := os.MkdirAll(run.Directory, 0o755); err != nil {
		g.t.Fatal(err)
	}
	return run, nil
}

func TestRun(t *testing.T) {
	for _, test := range []struct {
		name       string
		outcome    func(seed uint64) check.Verdict
		wantSeeds  []uint64
		wantRuns   int
		wantFailed []uint64
		wantErr    string
	}{
		{
			name: "failed runs are kept",
			outcome: func(seed uint64) check.Verdict {
				return map[uint64]check.Verdict{8: check.Fail, 10: check.Unknown, 11: check.NotExercised}[seed]
			},
			wantSeeds: []uint64{7, 8, 9, 10, 11}, wantRuns: 3, wantFailed: []uint64{8, 10, 11},
		},
		{
			name:      "everything passes",
			outcome:   func(uint64) check.Verdict { return check.Pass },
			wantSeeds: []uint64{7, 8, 9, 10, 11}, wantRuns: 5,
		},
		{
			name:      "no run can start",
			outcome:   func(uint64) check.Verdict { return "" },
			wantSeeds: []uint64{7, 8, 9},
			wantErr:   "3 consecutive runs could not start, the last one: disk full",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := &fakeRuns{t: t, clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0)), dir: t.TempDir(), outcome: test.outcome}
			results, err := Run(t.Context(), Options{Series: g.series(7), Parallel: Fixed(1), Duration: 5 * time.Minute, Clock: g.clock})
			if got := errorText(err); got != test.wantErr {
				t.Errorf("error %q, want %q", got, test.wantErr)
			}
			if diff := cmp.Diff(test.wantSeeds, g.seeds); diff != "" {
				t.Errorf("seeds (-want +got):\n%s", diff)
			}
			var failed []uint64
			for _, run := range results.Failed {
				failed = append(failed, run.Seed)
			}
			if diff := cmp.Diff(test.wantFailed, failed); diff != "" || results.Runs != test.wantRuns {
				t.Errorf("%d runs, want %d; failed runs (-want +got):\n%s", results.Runs, test.wantRuns, diff)
			}
			if len(results.Passed) != results.Runs-len(results.Failed) {
				t.Errorf("%d passed; want those of the %d runs that did not fail", len(results.Passed), results.Runs)
			}
			for _, run := range results.Passed {
				if run.Verdict != check.Pass || run.Directory != "" || run.Seed == 0 {
					t.Errorf("passed %+v; want it without its directory, which is gone", run)
				}
			}
			left, err := os.ReadDir(g.dir)
			if err != nil || len(left) != len(test.wantFailed) {
				t.Errorf("%d directories are left (%v), want those of the %d failed", len(left), err, len(test.wantFailed))
			}
		})
	}
}

// TestRunInterrupted checks which runs a campaign counts that is interrupted during its second run.
func TestRunInterrupted(t *testing.T) {
	aborted := errors.New("interrupted")
	for _, test := range []struct {
		name       string
		second     *reports.Run // its directory is set by the test
		err        error
		planned    int
		wantRuns   int
		wantFailed int
		want       string
	}{
		{"the run is aborted", &reports.Run{Verdict: check.Unknown}, aborted, 4, 1, 0, "interrupted after 1 of 4 runs"},
		{"the run cannot start", nil, aborted, 4, 1, 0, "interrupted after 1 of 4 runs"},
		{"the run fails before it is aborted", &reports.Run{Verdict: check.Fail}, aborted, 4, 2, 1, "interrupted after 2 of 4 runs"},
		{"the run ends and passes", &reports.Run{Verdict: check.Pass}, nil, 4, 2, 0, "interrupted after 2 of 4 runs"},
		{"the last run ends and passes", &reports.Run{Verdict: check.Pass}, nil, 2, 2, 0, ""},
		{"the number of runs is unknown", &reports.Run{Verdict: check.Pass}, nil, 0, 2, 0, "interrupted; runs completed: 2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			directory := t.TempDir()
			if test.second != nil {
				test.second.Directory = directory
			}
			results, err := Run(ctx, Options{
				Series: of(
					func(context.Context) (*reports.Run, error) { return &reports.Run{Verdict: check.Pass}, nil },
					func(context.Context) (*reports.Run, error) {
						cancel()
						return test.second, test.err
					},
					func(context.Context) (*reports.Run, error) {
						t.Error("a run started after the interruption")
						return nil, nil
					},
				),
				Planned: test.planned, Parallel: Fixed(1), Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0)),
			})
			if err != nil || results.Runs != test.wantRuns || len(results.Failed) != test.wantFailed || results.Interrupted != test.want {
				t.Errorf("%+v, error %v; want %d runs, %d failed, %q", results, err, test.wantRuns, test.wantFailed, test.want)
			}
			_, err = os.Stat(directory)
			if passed := test.second != nil && test.second.Verdict == check.Pass; passed != os.IsNotExist(err) {
				t.Errorf("the directory of the second run: %v; want it removed only if the run passed", err)
			}
		})
	}
}

// TestRunParallelOrder checks that a campaign returns failed runs in the order in which they
// started.
func TestRunParallelOrder(t *testing.T) {
	var all []Attempt
	ended := make([]chan struct{}, 6)
	for i := range ended {
		ended[i] = make(chan struct{})
		all = append(all, func(context.Context) (*reports.Run, error) {
			defer close(ended[i])
			if i%3 < 2 { // of every three concurrent runs, the last one ends first
				<-ended[i+1]
			}
			return &reports.Run{Seed: uint64(i), Verdict: check.Fail}, nil
		})
	}
	results, err := Run(t.Context(), Options{Series: of(all...), Parallel: Fixed(3), Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0))})
	var seeds []uint64
	for _, run := range results.Failed {
		seeds = append(seeds, run.Seed)
	}
	if diff := cmp.Diff([]uint64{0, 1, 2, 3, 4, 5}, seeds); diff != "" || err != nil {
		t.Errorf("%v; failed runs (-want +got):\n%s", err, diff)
	}
}

// TestRunParallelStops checks that no run starts after an error, and that RunParallel waits
// for the runs in progress.
func TestRunParallelStops(t *testing.T) {
	enough, wrong := errors.New("enough"), errors.New("wrong")
	pass := func(context.Context) (*reports.Run, error) { return &reports.Run{Verdict: check.Pass}, nil }
	for _, test := range []struct {
		name      string
		series    iter.Seq2[Attempt, error]
		take      error
		want      error
		wantTaken int
	}{
		{name: "to its end", series: of(pass, pass, pass), wantTaken: 3},
		{name: "stopped by take", series: of(pass, pass, pass), take: enough, want: enough, wantTaken: 1},
		{name: "error in the series", series: func(yield func(Attempt, error) bool) { _ = yield(pass, nil) && yield(nil, wrong) && yield(pass, nil) }, want: wrong, wantTaken: 1},
		{name: "empty series", series: of()},
	} {
		t.Run(test.name, func(t *testing.T) {
			taken := 0
			err := RunParallel(t.Context(), Fixed(1), test.series, func(int, *reports.Run, error) error {
				taken++
				return test.take
			})
			if !errors.Is(err, test.want) || taken != test.wantTaken {
				t.Errorf("%d taken, error %v; want %d, %v", taken, err, test.wantTaken, test.want)
			}
		})
	}
}

func TestDefaultParallel(t *testing.T) {
	for _, test := range []struct {
		cores     int
		available uint64
		want      int
	}{{2, 16 << 30, 2}, {16, 16 << 30, 8}, {8, 1 << 30, 1}, {4, 0, 1}} {
		if got := parallelFor(test.cores, test.available); got != test.want {
			t.Errorf("%d cores, %d bytes: %d, want %d", test.cores, test.available, got, test.want)
		}
	}
	if availableBytes() == 0 {
		t.Error("available memory is unknown")
	}
}

func of(all ...Attempt) iter.Seq2[Attempt, error] {
	return func(yield func(Attempt, error) bool) {
		for _, attempt := range all {
			if !yield(attempt, nil) {
				return
			}
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
