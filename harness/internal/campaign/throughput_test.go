package campaign_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/internal/campaign"
	"github.com/kube-gauntlet/gauntlet/harness/internal/generate"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// BenchmarkScenarios reports how many generated scenarios this machine runs per minute, and the
// median duration of a run. The duration of a run includes the start of the control plane and the
// checks. The benchmark runs SEEDS scenarios, by default 20, in parallel. The goal is 20
// scenarios per minute and core.
func BenchmarkScenarios(b *testing.B) {
	seeds := uint64(20)
	if value := os.Getenv("SEEDS"); value != "" {
		n, err := strconv.ParseUint(value, 10, 16)
		if err != nil || n < 1 {
			b.Fatalf("SEEDS=%s: expected a number of at least 1", value)
		}
		seeds = n
	}
	for b.Loop() {
		var times runTimes
		start := time.Now()
		results, err := campaign.Run(b.Context(), campaign.Options{
			Series: func(yield func(campaign.Attempt, error) bool) {
				for seed := uint64(1); seed <= seeds; seed++ {
					o, err := runOptions(seed, b.TempDir())
					if !yield(times.timed(o), err) {
						return
					}
				}
			},
			Parallel: campaign.DefaultLimit(4 * runtime.NumCPU()),
			Clock:    clock.RealClock{},
		})
		if err != nil {
			b.Fatal(err)
		}
		for _, failed := range results.Failed {
			b.Logf("seed %d: %s: %s", failed.Seed, failed.Verdict, failed.Reason)
		}
		perMinute := float64(results.Runs) / time.Since(start).Minutes()
		b.ReportMetric(perMinute, "scenarios/min")
		b.ReportMetric(perMinute/float64(runtime.NumCPU()), "scenarios/min/core")
		b.ReportMetric(times.median().Seconds(), "median-s")
	}
}

// runOptions returns the options of a run in which our controllers run the scenario that the seed
// generates.
func runOptions(seed uint64, out string) (run.Options, error) {
	profile, err := generate.ProfileNamed(generate.DefaultProfile)
	if err != nil {
		return run.Options{}, err
	}
	provider, err := providers.Named(providers.Default())
	if err != nil {
		return run.Options{}, err
	}
	s, err := generate.Scenario(generate.Options{Seed: seed, Profile: profile, Provider: provider})
	return run.Options{
		Scenario: s,
		Target:   subject.Ours,
		Provider: provider.Name,
		Out:      out,
		Ours:     filepath.Join("..", "..", "bin", "workload-controller-manager"),
		Progress: func(string) {},
		Clock:    clock.RealClock{},
		Revision: "bench",
	}, err
}

// runTimes collects the durations of concurrent runs.
type runTimes struct {
	mu  sync.Mutex
	all []time.Duration
}

// timed returns a campaign attempt that makes a run with the given options and records the run's
// duration.
func (t *runTimes) timed(o run.Options) campaign.Attempt {
	return func(ctx context.Context) (*reports.Run, error) {
		start := time.Now()
		result, err := run.Run(ctx, o)
		t.mu.Lock()
		defer t.mu.Unlock()
		t.all = append(t.all, time.Since(start))
		if err != nil {
			err = fmt.Errorf("seed %d: %w", o.Scenario.Seed, err)
		}
		return result, err
	}
}

// median returns the median of the recorded durations. Without durations it returns 0.
func (t *runTimes) median() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.all) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(t.all))[len(t.all)/2]
}
