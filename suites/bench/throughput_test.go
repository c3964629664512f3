package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/harness/campaign"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/embedded"
	"github.com/kube-gauntlet/gauntlet/harness/generate"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// BenchmarkScenarios prints how many scenarios of the default size this machine
// gets through in a minute, from the start of the control plane to the verdict, as
// many at a time as it has room for; and how long one takes of it, the median. SEEDS
// are how many there are, 20 unless set. The goal is 20 in under 3 minutes.
func BenchmarkScenarios(b *testing.B) {
	seeds := uint64(20)
	if asked := os.Getenv("SEEDS"); asked != "" {
		n, err := strconv.ParseUint(asked, 10, 16)
		if err != nil || n < 1 {
			b.Fatalf("SEEDS=%s: expected a number of seeds, from 1", asked)
		}
		seeds = n
	}
	for b.Loop() {
		var took runTimes
		begun := time.Now()
		bag, err := campaign.Run(b.Context(), campaign.Options{
			Series: func(yield func(campaign.Attempt, error) bool) {
				for seed := uint64(1); seed <= seeds; seed++ {
					o, err := runOptions(seed, b.TempDir())
					if !yield(took.timed(o), err) {
						return
					}
				}
			},
			Parallel: campaign.DefaultParallel(),
			Clock:    clock.RealClock{},
		})
		if err != nil {
			b.Fatal(err)
		}
		for _, caught := range bag.Failed { // that is for others to look into
			b.Logf("seed %d: %s: %s", caught.Seed, caught.Verdict, caught.Reason)
		}
		b.ReportMetric(float64(bag.Runs)/time.Since(begun).Minutes(), "scenarios/min")
		b.ReportMetric(took.median().Seconds(), "median-s")
	}
}

// runOptions is a run of our controllers through the scenario of a seed.
func runOptions(seed uint64, out string) (run.Options, error) {
	profile, err := generate.ProfileNamed(generate.DefaultProfile)
	if err != nil {
		return run.Options{}, err
	}
	s, err := generate.Scenario(generate.Options{Seed: seed, Profile: profile, Provider: faults.Simulated})
	return run.Options{
		Scenario: s,
		Target:   subject.Ours,
		Provider: faults.Simulated,
		Out:      out,
		Ours:     filepath.Join("..", "..", "bin", "workload-controller-manager"),
		Progress: func(string) {},
		Clock:    clock.RealClock{},
		Revision: "bench",
		Versions: embedded.Versions(""),
	}, err
}

// runTimes are how long runs took.
type runTimes struct {
	mu  sync.Mutex
	all []time.Duration
}

// timed is a run that is timed.
func (t *runTimes) timed(o run.Options) campaign.Attempt {
	return func(ctx context.Context) (*reports.Run, error) {
		begun := time.Now()
		judged, err := run.Run(ctx, o)
		t.mu.Lock()
		defer t.mu.Unlock()
		t.all = append(t.all, time.Since(begun))
		if err != nil {
			err = fmt.Errorf("seed %d: %w", o.Scenario.Seed, err)
		}
		return judged, err
	}
}

func (t *runTimes) median() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.all) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(t.all))[len(t.all)/2]
}
