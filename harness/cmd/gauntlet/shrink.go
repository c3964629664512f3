package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kube-gauntlet/gauntlet/harness/baseline"
	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
	"github.com/kube-gauntlet/gauntlet/harness/internal/outputfile"
	"github.com/kube-gauntlet/gauntlet/harness/internal/shrink"
	"github.com/kube-gauntlet/gauntlet/harness/nearest"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// shrinkFlags has the values of the flags of "gauntlet shrink". It also has the state of the search
// for the smallest failing scenario.
type shrinkFlags struct {
	// runs has the flags that apply to every run of the search.
	runs runFlags
	// check is the ID of the check that must fail. If --check is not set, it is empty until the
	// method run sets it to the first failed check.
	check string
	// failure is the failure that a run of a smaller scenario must show, in the same failure
	// group. If it is nil, the check may fail for another reason than in the original run.
	failure *reports.Failure
	// baselines has the baseline of each workload, if the check needs baselines. The key is the
	// result of workloadDigest. See the method baseline.
	baselines map[string]*baseline.Baseline
	// issue is the slug of the known upstream issue because of which the check fails. It is empty
	// if the verdict of the check is fail.
	issue string
	// journal, if set, also receives each line that the search appends to its journal file. It is
	// nil except in a pod of a fleet.
	journal io.Writer
}

func newShrink(code *int) *cobra.Command {
	var flags shrinkFlags
	cmd := &cobra.Command{
		Use:   "shrink RUNDIR",
		Short: "Find the smallest scenario that fails the same check as a run",
		Long: `Make the scenario of a failed run smaller while the same check still fails: remove
faults, objects and steps, and reduce replicas and times. If the scenario fails only in
some runs, the command repeats each candidate until the candidate fails, or until it
counts as passing with a confidence of 95 %. If the check compares the run with runs
without faults, the command makes such runs for each smaller workload, too. For a run
with the verdict known-upstream, the same upstream issue must appear.

The smallest scenario so far is in RUNDIR/shrink/smallest.yaml, also after Ctrl-C. If
you start the command again, it continues the search. The exit status is 0 if the search
is complete, and 2 if it was interrupted.`,
		Example: `  gauntlet shrink out/RUN
  gauntlet shrink out/RUN --check=max-surge`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := flags.run(cmd, args[0])
			*code = exitPass
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&flags.check, "check", "", "the `ID` of the check that must fail (default: the first check that failed)")
	f.StringVar(&flags.runs.subject, "subject", "", "the controllers under test (default: the subject of the run)")
	upstreamDirFlag(f, &flags.runs.upstreamDir)
	nodeImageFlag(f, &flags.runs.nodeImage)
	return cmd
}

// run shrinks the scenario of the failed run in the directory path. It adds the smallest scenario
// to that run's reports.
func (f *shrinkFlags) run(cmd *cobra.Command, path string) error {
	failed, err := orInterrupted(cmd.Context(), func() (*reports.Run, error) { return run.Check(path) })
	switch {
	case err != nil && failed == nil || errors.Is(err, run.ErrUnreadable):
		return err
	case err != nil: // path is a run directory, but writing its reports failed
		return &unfinishedError{err}
	}
	if _, err := providers.NamedWith(failed.Provider, cluster.OwnsControlPlane); err != nil {
		return fmt.Errorf("%s: gauntlet cannot repeat the run: %w", path, err)
	}
	unlock, err := run.Lock(path)
	if err != nil {
		return err
	}
	defer unlock()
	original, err := scenario.Load(run.ScenarioFile(path))
	if err != nil {
		return err
	}
	if id, ok := scenario.RenamedCheck(f.check); ok {
		fmt.Fprintln(cmd.ErrOrStderr(), "warning:", scenario.RenameWarning(f.check, id))
		f.check = id
	}
	if f.check, f.issue, err = findFailedCheck(failed, f.check); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	f.runs.seed, f.runs.provider = failed.Seed, failed.Provider
	ofRun := f.runs.subject == ""
	if ofRun {
		f.runs.subject = failed.Subject
	}
	original.Seed = failed.Seed
	if err := f.useBaseline(path, original); err != nil {
		return err
	}
	f.runs.out = filepath.Join(path, "shrink")
	if err := cmp.Or(inputfile.CheckDirectory(f.runs.out), inputfile.CheckRegular(f.smallest())); err != nil {
		return err
	}
	f.runs.terminal = f.runs.newTerminal(cmd)
	if _, err := f.runs.options(cmd, []*scenario.Scenario{original.Clone()}); err != nil {
		return f.explain(err, ofRun) // the options are wrong; no run has started
	}
	prober, closeJournal, err := f.prober(cmd)
	if err != nil {
		return err // the journal of an earlier call is damaged; no run has started
	}
	defer closeJournal()
	err = f.shrink(cmd, original, prober)
	if err != nil && cmd.Context().Err() != nil {
		err = errors.New("interrupted; run the same command to continue the search")
	}
	if err := errors.Join(err, reports.WriteFiles(path, *failed)); err != nil { // write report.html again, which now shows the smallest scenario
		return &unfinishedError{err}
	}
	return nil
}

// smallest returns the path of the file with the smallest scenario that fails.
func (f *shrinkFlags) smallest() string { return filepath.Join(f.runs.out, "smallest.yaml") }

// explain replaces advice that the flags of "gauntlet shrink" do not allow: the provider is that of
// the failed run. The argument ofRun is true if the subject is that of the run too, so that the
// flag --subject is not wrong.
func (f *shrinkFlags) explain(err error, ofRun bool) error {
	if reason, ok := strings.CutPrefix(err.Error(), "--subject: "); ok && ofRun {
		return fmt.Errorf("the subject of the run in environment.json: %s", reason)
	}
	found, advice, ok := strings.Cut(err.Error(), "; ")
	if !ok || !strings.Contains(advice, "--provider=") {
		return err
	}
	return fmt.Errorf("%s; shrink repeats the run on its provider %s: omit the flag, or set another value", found, f.runs.provider)
}

// findFailedCheck returns the ID of the first check that failed in a run. If no check failed, it
// returns the first check with the verdict known-upstream, and the slug of the issue. If id is not
// empty, only the check with this ID counts. It returns an error if there is no such check.
func findFailedCheck(r *reports.Run, id string) (failed, issue string, err error) {
	for _, verdict := range []check.Verdict{check.Fail, check.KnownUpstream} {
		for _, result := range r.Results {
			if result.Verdict == verdict && (id == "" || result.Check == id) {
				return result.Check, knownIssue(result), nil
			}
		}
	}
	if id == "" {
		return "", "", errors.New("no check failed in the run; give the directory of a run in which a check failed")
	}
	if !slices.Contains(checkIDs(), id) {
		return "", "", fmt.Errorf("--check=%s: no check has this ID%s", id, cmp.Or(nearest.Suggestion(id, checkIDs()), "; \"gauntlet list checks\" lists the checks"))
	}
	return "", "", fmt.Errorf("check %q did not fail in the run; name a check that failed, or omit --check", id)
}

// knownIssue returns the slug of the known upstream issue that explains the first violation in a
// check's result. It returns "" if the verdict of the result is not known-upstream.
func knownIssue(result check.Result) string {
	if result.Verdict != check.KnownUpstream || len(result.Evidence) == 0 {
		return ""
	}
	return result.Evidence[0].KnownIssue
}

// confirmationRuns is how often gauntlet shrink runs the smallest scenario at the end. These runs
// show how often the check fails in this scenario.
const confirmationRuns = 5

// shrink searches for the smallest scenario in which the check fails, and writes the scenario to
// smallest.yaml in f.runs.out.
func (f *shrinkFlags) shrink(cmd *cobra.Command, original *scenario.Scenario, prober *shrink.Prober) error {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	if err := prober.Calibrate(ctx, original); err != nil {
		return fmt.Errorf("running the original scenario: %w", err)
	}
	fmt.Fprintf(out, "check %s fails in the original scenario; a smaller scenario counts as passing after %d runs without a failure, with a confidence of %.0f%%\n",
		f.check, prober.Runs(), 100*prober.Confidence())
	smallest := f.smallest()
	small, err := shrink.Shrink(original, func(s *scenario.Scenario) (bool, error) {
		failing, err := prober.Fails(ctx, s)
		if failing && err == nil {
			fmt.Fprintf(out, "the check still fails (steps: %d, faults: %d)\n", len(s.Workload), len(s.Faults))
			err = writeScenario(smallest, s)
		}
		return failing, err
	})
	if err != nil {
		return errors.Join(err, writeScenario(smallest, small))
	}
	times, err := prober.Confirm(ctx, small, confirmationRuns)
	if err != nil {
		return err
	}
	small = small.Clone()
	small.Description = fmt.Sprintf("The check %s failed in %d of %d runs on %s. Shrunk from %s: %.700s",
		f.check, times, confirmationRuns, filepath.Base(f.runs.subject), original.Name, original.Description)
	fmt.Fprintf(out, "the check failed in %[3]d of %[4]d runs of the smallest scenario (steps: %[1]d, faults: %[2]d): %[5]s\n",
		len(small.Workload), len(small.Faults), times, confirmationRuns, smallest)
	return writeScenario(smallest, small)
}

// prober returns a Prober, which runs candidates for the smallest scenario that fails. Earlier
// calls of the same search have saved their results in a journal file. The Prober reads this file,
// and appends the result of each new run. The returned function closes the file.
func (f *shrinkFlags) prober(cmd *cobra.Command) (*shrink.Prober, func(), error) {
	if err := os.MkdirAll(f.runs.out, 0o755); err != nil {
		return nil, nil, fmt.Errorf("%s: cannot create the directory of the search: %w", f.runs.out, inputfile.Reason(err))
	}
	path := filepath.Join(f.runs.out, f.check+".jsonl")
	journal, known, err := outputfile.OpenJournal(path)
	if err != nil {
		return nil, nil, err
	}
	var lines io.Writer = journal
	if f.journal != nil {
		lines = io.MultiWriter(journal, f.journal)
	}
	search := fmt.Sprintf("%s %s %s %s %t", f.runs.subject, f.runs.nodeImage, f.check, f.issue, f.failure != nil)
	p := &shrink.Prober{Search: search, Journal: lines, Run: func(ctx context.Context, s *scenario.Scenario) (bool, error) { return f.fails(ctx, cmd, s) }}
	if err := p.Resume(bytes.NewReader(known)); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s:%w", path, err), journal.Close())
	}
	return p, func() { journal.Close() }, nil
}

// fails reports whether a scenario fails in the same way as the run to shrink. For this, it runs
// the scenario once, and deletes the run's directory. If f.issue is set, the run must also show
// that known upstream issue.
func (f *shrinkFlags) fails(ctx context.Context, cmd *cobra.Command, s *scenario.Scenario) (bool, error) {
	options, err := f.runs.options(cmd, []*scenario.Scenario{s.Clone()})
	if errors.Is(err, errNothingToReconcile) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if f.baselines != nil {
		learnt, err := f.baseline(ctx, cmd, s)
		if err != nil || learnt == nil {
			return false, err
		}
		options[0].Baseline = learnt
	}
	for attempt := 1; ; attempt++ {
		result, err := discardInterrupted(func(ctx context.Context) (*reports.Run, error) { return run.Run(ctx, options[0]) })(ctx)
		if result == nil {
			return false, err
		}
		_, issue, passed := findFailedCheck(result, f.check)
		failing := passed == nil && issue == f.issue && (f.failure == nil || f.failure.In(result))
		removed := os.RemoveAll(result.Directory)
		if failing || err == nil || removed != nil {
			return failing, removed
		}
		// The run was aborted, for example because the subject did not start. It says nothing about the scenario.
		if attempt == abortedRunsMax || ctx.Err() != nil {
			return false, err
		}
	}
}

// abortedRunsMax is the number of aborted runs of one scenario after which the search ends with an error.
const abortedRunsMax = 3

// writeScenario writes a scenario as YAML to the file at path.
func writeScenario(path string, s *scenario.Scenario) error {
	text, err := s.Marshal()
	if err != nil {
		return err
	}
	return outputfile.Replace(path, text)
}
