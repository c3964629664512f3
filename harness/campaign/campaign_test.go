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

// fakeRuns makes runs that take a minute each and come out as their seed says.
type fakeRuns struct {
	t     *testing.T
	clock *clocktesting.FakePassiveClock
	dir   string
	// outcome is a verdict, or nothing for a run that cannot begin.
	outcome func(seed uint64) check.Verdict
	seeds   []uint64
}

// series has a run for each seed from the first one on.
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
		return nil, errors.New("no room on the disk")
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
		wantCaught []uint64
		wantErr    string
	}{
		{
			name: "what did not pass is kept",
			outcome: func(seed uint64) check.Verdict {
				return map[uint64]check.Verdict{8: check.Fail, 10: check.Unknown, 11: check.NotExercised}[seed]
			},
			wantSeeds: []uint64{7, 8, 9, 10, 11}, wantRuns: 3, wantCaught: []uint64{8, 10, 11},
		},
		{
			name:      "everything passes",
			outcome:   func(uint64) check.Verdict { return check.Pass },
			wantSeeds: []uint64{7, 8, 9, 10, 11}, wantRuns: 5,
		},
		{
			name:      "nothing can begin",
			outcome:   func(uint64) check.Verdict { return "" },
			wantSeeds: []uint64{7, 8, 9},
			wantErr:   "3 runs on end could not begin, the last one: no room on the disk",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := &fakeRuns{t: t, clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0)), dir: t.TempDir(), outcome: test.outcome}
			bag, err := Run(t.Context(), Options{Series: g.series(7), Parallel: 1, Duration: 5 * time.Minute, Clock: g.clock})
			if got := errorText(err); got != test.wantErr {
				t.Errorf("error %q, want %q", got, test.wantErr)
			}
			if diff := cmp.Diff(test.wantSeeds, g.seeds); diff != "" {
				t.Errorf("seeds (-want +got):\n%s", diff)
			}
			var caught []uint64
			for _, run := range bag.Failed {
				caught = append(caught, run.Seed)
			}
			if diff := cmp.Diff(test.wantCaught, caught); diff != "" || bag.Runs != test.wantRuns {
				t.Errorf("%d runs, want %d; caught (-want +got):\n%s", bag.Runs, test.wantRuns, diff)
			}
			if len(bag.Passed) != bag.Runs-len(bag.Failed) {
				t.Errorf("%d passed; want those of the %d that were not caught", len(bag.Passed), bag.Runs)
			}
			for _, run := range bag.Passed {
				if run.Verdict != check.Pass || run.Directory != "" || run.Seed == 0 {
					t.Errorf("passed %+v; want it without its directory, which is gone", run)
				}
			}
			left, err := os.ReadDir(g.dir)
			if err != nil || len(left) != len(test.wantCaught) {
				t.Errorf("%d directories are left (%v), want those of the %d caught", len(left), err, len(test.wantCaught))
			}
		})
	}
}

// TestRunInterrupted demands that the run which an interruption broke off is not
// counted, whatever it says of itself.
func TestRunInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	interrupted := func(context.Context) (*reports.Run, error) {
		cancel()
		return &reports.Run{Verdict: check.Unknown}, errors.New("interrupted")
	}
	bag, err := Run(ctx, Options{
		Series: of(interrupted), Parallel: 1, Clock: clock,
	})
	if err != nil || bag.Runs != 0 || len(bag.Failed) != 0 {
		t.Errorf("%+v, %v; want nothing", bag, err)
	}
}

// TestRunParallelOrder demands that runs which go on at the same time are reported in the
// order of the series, however they end.
func TestRunParallelOrder(t *testing.T) {
	var all []Attempt
	ended := make([]chan struct{}, 6)
	for i := range ended {
		ended[i] = make(chan struct{})
		all = append(all, func(context.Context) (*reports.Run, error) {
			defer close(ended[i])
			if i%3 < 2 { // the last one of three at a time ends first
				<-ended[i+1]
			}
			return &reports.Run{Seed: uint64(i), Verdict: check.Fail}, nil
		})
	}
	bag, err := Run(t.Context(), Options{Series: of(all...), Parallel: 3, Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0))})
	var seeds []uint64
	for _, run := range bag.Failed {
		seeds = append(seeds, run.Seed)
	}
	if diff := cmp.Diff([]uint64{0, 1, 2, 3, 4, 5}, seeds); diff != "" || err != nil {
		t.Errorf("%v; caught (-want +got):\n%s", err, diff)
	}
}

// TestRunParallelStops demands that nothing is begun once somebody has had enough, and
// that what is under way is waited for.
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
		{name: "by take", series: of(pass, pass, pass), take: enough, want: enough, wantTaken: 1},
		{name: "by the series", series: func(yield func(Attempt, error) bool) { _ = yield(pass, nil) && yield(nil, wrong) && yield(pass, nil) }, want: wrong, wantTaken: 1},
		{name: "nothing", series: of()},
	} {
		t.Run(test.name, func(t *testing.T) {
			taken := 0
			err := RunParallel(t.Context(), 1, test.series, func(int, *reports.Run, error) error {
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
		t.Error("this machine does not say how much memory it has")
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
