package hunt

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// game makes runs that take a minute each and come out as their seed says.
type game struct {
	t     *testing.T
	clock *clocktesting.FakePassiveClock
	dir   string
	// outcome is a verdict, or nothing for a run that cannot begin.
	outcome func(seed uint64) check.Verdict
	seeds   []uint64
}

func (g *game) round(seed uint64) ([]Attempt, error) {
	return []Attempt{func(context.Context) (*reports.Run, error) {
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
	}}, nil
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
				return map[uint64]check.Verdict{8: check.Fail, 10: check.Unknown, 11: check.Idle}[seed]
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
			g := &game{t: t, clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0)), dir: t.TempDir(), outcome: test.outcome}
			bag, err := Run(t.Context(), Options{Seed: 7, Duration: 5 * time.Minute, Round: g.round, Clock: g.clock})
			if got := errorText(err); got != test.wantErr {
				t.Errorf("error %q, want %q", got, test.wantErr)
			}
			if diff := cmp.Diff(test.wantSeeds, g.seeds); diff != "" {
				t.Errorf("seeds (-want +got):\n%s", diff)
			}
			var caught []uint64
			for _, run := range bag.Caught {
				caught = append(caught, run.Seed)
			}
			if diff := cmp.Diff(test.wantCaught, caught); diff != "" || bag.Runs != test.wantRuns {
				t.Errorf("%d runs, want %d; caught (-want +got):\n%s", bag.Runs, test.wantRuns, diff)
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
		Seed: 1, Duration: time.Hour, Clock: clock,
		Round: func(uint64) ([]Attempt, error) { return []Attempt{interrupted}, nil },
	})
	if err != nil || bag.Runs != 0 || len(bag.Caught) != 0 {
		t.Errorf("%+v, %v; want nothing", bag, err)
	}
}

func TestRunOfNothing(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	round := func(uint64) ([]Attempt, error) { return nil, nil }
	if _, err := Run(t.Context(), Options{Duration: time.Hour, Round: round, Clock: clock}); !strings.Contains(errorText(err), "without runs") {
		t.Errorf("error %v", err)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
