package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/kube-gauntlet/gauntlet/harness/baseline"
	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/internal/campaign"
	"github.com/kube-gauntlet/gauntlet/harness/internal/explore"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// runsPerBaseline is the number of runs without faults from which shrink learns the baseline of a
// smaller workload. With fewer runs, random values may look like fixed ones.
const runsPerBaseline = 3

// useBaseline prepares shrink for a check that compares a run with a baseline. A baseline is what
// runs without faults have in common. useBaseline reads the baseline in the run directory path,
// and stores it in f.baselines. This baseline is also valid for all other scenarios with the same
// workload. For a check that needs no baseline, useBaseline does nothing.
func (f *shrinkFlags) useBaseline(path string, original *scenario.Scenario) error {
	if c, known := check.Find(f.check); !known || !c.NeedsBaseline {
		return nil
	}
	learnt, err := baseline.Read(run.BaselineFile(path))
	if err != nil {
		return fmt.Errorf("reading the baseline of the run: %w", err)
	}
	digest, err := f.workloadDigest(explore.WithoutFaults(original))
	f.baselines = map[string]*baseline.Baseline{digest: learnt}
	return err
}

// baseline returns the baseline of a scenario: what runs of its workload without faults have in
// common. It returns nil if the workload does not complete without faults. Shrink then rejects the
// scenario.
//
// The result is the same for all scenarios with the same workload. baseline saves the result to a
// file in the directory baselines. A resumed search then need not make the runs again.
func (f *shrinkFlags) baseline(ctx context.Context, cmd *cobra.Command, s *scenario.Scenario) (*baseline.Baseline, error) {
	calm := explore.WithoutFaults(s)
	digest, err := f.workloadDigest(calm)
	if err != nil {
		return nil, err
	}
	if learnt, ok := f.baselines[digest]; ok {
		return learnt, nil
	}
	dir := filepath.Join(f.runs.out, "baselines")
	path := filepath.Join(dir, digest[:16]+".yaml")
	learnt, err := baseline.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		learnt, err = f.learn(ctx, cmd, s)
		if err == nil && learnt != nil {
			err = errors.Join(os.MkdirAll(dir, 0o755), learnt.Write(path))
		}
	}
	if err != nil {
		return nil, err
	}
	f.baselines[digest] = learnt
	return learnt, nil
}

// learn makes runs of a scenario without its faults, and returns what they have in common. It returns
// nil if a step of the workload fails.
func (f *shrinkFlags) learn(ctx context.Context, cmd *cobra.Command, s *scenario.Scenario) (*baseline.Baseline, error) {
	flags := baselineFlags{run: f.runs, runs: runsPerBaseline}
	all, err := flags.options(cmd, s)
	if err != nil {
		return nil, err
	}
	parallel, err := f.runs.parallelRuns()
	if err != nil {
		return nil, err
	}
	var attempts []campaign.Attempt
	for _, o := range all {
		attempts = append(attempts, discardInterrupted(func(ctx context.Context) (*reports.Run, error) { return run.Run(ctx, o) }))
	}
	var observers []*baseline.Observer
	completed := true
	err = campaign.RunParallel(ctx, parallel, seriesOf(attempts), func(_ int, r *reports.Run, err error) error {
		if r == nil || err != nil {
			return err
		}
		o := baseline.NewObserver()
		for record, err := range history.ReadFile(run.HistoryFile(r.Directory)) {
			if err != nil {
				return err
			}
			o.Observe(record)
		}
		observers = append(observers, o)
		completed = completed && o.FailedStep == ""
		return os.RemoveAll(r.Directory)
	})
	if err = errors.Join(err, ctx.Err()); err != nil || !completed {
		return nil, err
	}
	return baseline.Combine(observers), nil
}

// workloadDigest returns a hash of a scenario without faults and of the subject. Scenarios that differ only
// in their name and description have the same hash.
func (f *shrinkFlags) workloadDigest(calm *scenario.Scenario) (string, error) {
	calm = calm.Clone()
	calm.Name, calm.Description = "workload", "The workload alone."
	text, err := calm.Marshal()
	sum := sha256.Sum256(fmt.Appendf(text, "\n%s %s", f.runs.subject, f.runs.nodeImage))
	return hex.EncodeToString(sum[:]), err
}
