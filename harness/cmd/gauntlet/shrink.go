package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/shrink"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// shrinkFlags are the flags of `gauntlet shrink`.
type shrinkFlags struct {
	runs  runFlags
	check string
}

func newShrink(code *int) *cobra.Command {
	var flags shrinkFlags
	cmd := &cobra.Command{
		Use:   "shrink RUNDIR",
		Short: "Find the smallest scenario that fails as a run did",
		Long: `Make the scenario of a failed run smaller for as long as the same check fails:
without some faults, objects and steps, with fewer replicas and shorter times. A
scenario that fails now and then is run as often as it takes to tell.

The smallest scenario so far is in RUNDIR/shrink/smallest.yaml, also after Ctrl-C;
begun again, the command goes on where it was. The exit status is 0 when the
smallest scenario was found, and 2 when it broke off.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := flags.run(cmd, args[0])
			*code = exitPass
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&flags.check, "check", "", "the `ID` of the check that is to fail; by default the first that failed")
	f.StringVar(&flags.runs.subject, "subject", "", "what is under test; by default what was")
	upstreamDirFlag(f, &flags.runs.upstreamDir)
	nodeImageFlag(f, &flags.runs.nodeImage)
	return cmd
}

// run shrinks the scenario of a run.
func (f *shrinkFlags) run(cmd *cobra.Command, path string) error {
	failed, err := run.Check(path)
	if err != nil {
		return err
	}
	if failed.Provider == faults.Existing {
		return fmt.Errorf("%s: a run on a cluster that was there already; expected one on a control plane of its own", path)
	}
	original, err := scenario.Load(run.ScenarioFile(path))
	if err != nil {
		return err
	}
	if f.check, err = failedCheck(failed, f.check); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	f.runs.seed, f.runs.provider = failed.Seed, failed.Provider
	if f.runs.subject == "" {
		f.runs.subject = failed.Subject
	}
	original.Seed = failed.Seed
	f.runs.out = filepath.Join(path, "shrink")
	f.runs.terminal = newTerminal(cmd.ErrOrStderr())
	if _, err := f.runs.options(cmd, []*scenario.Scenario{original.Clone()}); err != nil {
		return err // before anything is written
	}
	err = f.shrink(cmd, original)
	if err := errors.Join(err, reports.WriteFiles(path, *failed)); err != nil { // the page has what was found by now
		return &unfinishedError{err}
	}
	return nil
}

// failedCheck is the ID of the check that failed in a run: the given one, or the
// first.
func failedCheck(judged *reports.Run, id string) (string, error) {
	for _, result := range judged.Results {
		if result.Verdict == check.Fail && (id == "" || result.Check == id) {
			return result.Check, nil
		}
	}
	if id == "" {
		return "", errors.New("expected a run in which a check failed")
	}
	return "", fmt.Errorf("expected a run in which check %q failed", id)
}

// confirmations are how often the smallest scenario is run in the end.
const confirmations = 5

// shrink runs smaller and smaller scenarios, and leaves the smallest in a file.
func (f *shrinkFlags) shrink(cmd *cobra.Command, original *scenario.Scenario) error {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	prober, closeJournal, err := f.prober(cmd)
	if err != nil {
		return err
	}
	defer closeJournal()
	if err := prober.Calibrate(ctx, original); err != nil {
		return fmt.Errorf("the scenario as it is: %w", err)
	}
	fmt.Fprintf(out, "%s fails; a scenario that does not in %d runs is taken not to, with a confidence of %.0f%%\n",
		f.check, prober.Runs(), 100*prober.Confidence())
	smallest := filepath.Join(f.runs.out, "smallest.yaml")
	small, err := shrink.Shrink(original, func(s *scenario.Scenario) (bool, error) {
		failing, err := prober.Fails(ctx, s)
		if failing && err == nil {
			fmt.Fprintf(out, "still fails with %d steps and %d faults\n", len(s.Workload), len(s.Faults))
			err = writeScenario(smallest, s)
		}
		return failing, err
	})
	if err != nil {
		return errors.Join(err, writeScenario(smallest, small))
	}
	times, err := prober.Confirm(ctx, small, confirmations)
	if err != nil {
		return err
	}
	small = small.Clone()
	small.Description = fmt.Sprintf("%s failed in %d of %d runs on %s. Shrunk from %s: %.700s",
		f.check, times, confirmations, filepath.Base(f.runs.subject), original.Name, original.Description)
	fmt.Fprintf(out, "%d steps and %d faults are left, which fail in %d of %d runs: %s\n",
		len(small.Workload), len(small.Faults), times, confirmations, smallest)
	return writeScenario(smallest, small)
}

// prober makes runs, and keeps a journal from which it goes on.
func (f *shrinkFlags) prober(cmd *cobra.Command) (*shrink.Prober, func(), error) {
	if err := os.MkdirAll(f.runs.out, 0o755); err != nil {
		return nil, nil, err
	}
	path := filepath.Join(f.runs.out, f.check+".jsonl")
	known, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, nil, err
	}
	known = known[:bytes.LastIndexByte(known, '\n')+1] // what was cut short is run again
	journal, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, nil, err
	}
	p := &shrink.Prober{Journal: journal, Run: func(ctx context.Context, s *scenario.Scenario) (bool, error) { return f.fails(ctx, cmd, s) }}
	if err := errors.Join(journal.Truncate(int64(len(known))), p.Resume(bytes.NewReader(known))); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s: %w", path, err), journal.Close())
	}
	if _, err := journal.Seek(0, 2); err != nil {
		return nil, nil, errors.Join(err, journal.Close())
	}
	return p, func() { journal.Close() }, nil
}

// fails makes one run, of which nothing is kept, and reports whether the check
// failed in it.
func (f *shrinkFlags) fails(ctx context.Context, cmd *cobra.Command, s *scenario.Scenario) (bool, error) {
	options, err := f.runs.options(cmd, []*scenario.Scenario{s.Clone()})
	if err != nil {
		return false, err
	}
	judged, err := run.Run(ctx, options[0])
	if judged == nil {
		return false, err
	}
	_, notFailed := failedCheck(judged, f.check)
	return notFailed == nil, os.RemoveAll(judged.Directory)
}

func writeScenario(path string, s *scenario.Scenario) error {
	text, err := s.Marshal()
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}
