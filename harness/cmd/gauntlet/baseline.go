package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kube-gauntlet/gauntlet/harness/baseline"
	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
	"github.com/kube-gauntlet/gauntlet/harness/internal/campaign"
	"github.com/kube-gauntlet/gauntlet/harness/internal/explore"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// baselineFlags has the values of the flags of "gauntlet baseline", which learns what runs without
// faults have in common.
type baselineFlags struct {
	run    runFlags
	runs   int    // the number of runs without faults
	output string // the file to write; empty for the default name
}

func newBaseline(code *int) *cobra.Command {
	var flags baselineFlags
	cmd := &cobra.Command{
		Use:   "baseline SCENARIO",
		Short: "Learn what runs of a scenario without faults have in common",
		Long: `Run the workload of a scenario without faults, several times with different seeds. Write
what the runs have in common to a file: the objects at the end, and how often the
subject created and deleted each object. Values on which the runs do not agree are "*".

"gauntlet run SCENARIO --baseline=FILE" then compares a run that has faults with the
file. The checks same-end-state and no-extra-effects do this, without any knowledge of
the controller.
You may edit the file, for example to ignore a field. If a check fails without faults,
the command prints the verdict, and still writes the file.`,
		Example: `  gauntlet baseline rollout
  gauntlet baseline my-scenario.yaml --subject=my-operator.yaml --output=my-baseline.yaml
  gauntlet run my-scenario.yaml --subject=my-operator.yaml --baseline=my-baseline.yaml`,
		ValidArgsFunction: completeScenarios,
		Args:              cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			*code, err = flags.learn(cmd, args[0])
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&flags.run.subject, "subject", "ours", "the controllers under test; see --subject of \"gauntlet run\"")
	f.IntVar(&flags.runs, "runs", 3, "the number of runs without faults; with fewer than 3, random values may look like fixed ones")
	f.StringVar(&flags.output, "output", "", "the `file` to write; it must not exist (default: SCENARIO-baseline.yaml)")
	f.Uint64Var(&flags.run.seed, "seed", 1, "the seed of the first run; each further run has the next seed")
	flags.run.addShared(f)
	return cmd
}

// learn runs the scenario without faults and writes the baseline, which is what these runs have
// in common. It prints the verdicts of runs in which a check failed, and returns the exit code;
// see learnFrom.
func (f *baselineFlags) learn(cmd *cobra.Command, name string) (int, error) {
	if err := checkCount("runs", f.runs, 1, runsMax); err != nil {
		return exitPass, err
	}
	if err := checkSeeds(f.run.seed, f.runs); err != nil {
		return exitPass, err
	}
	parallel, err := f.run.parallelRuns()
	if err != nil {
		return exitPass, err
	}
	s, err := loadScenario(cmd.Context(), name, cmd.ErrOrStderr(), f.run.subject)
	if err != nil {
		return exitPass, err
	}
	if f.output == "" {
		f.output = s.Name + "-baseline.yaml"
	}
	if err := checkNewFile(f.output); err != nil {
		return exitPass, err
	}
	all, err := f.options(cmd, s)
	if err != nil {
		return exitPass, err
	}
	return f.learnFrom(cmd, all, s.WorkloadHash(), parallel)
}

// checkNewFile returns an error if the path of --output is not that of a new file. It also returns
// an error if no file can be created there.
func checkNewFile(path string) error {
	switch _, err := os.Lstat(path); {
	case path == "-":
		return errors.New(`--output: found "-"; expected the path of a new file, because the command prints other text to standard output`)
	case isDirectory(path):
		return fmt.Errorf("--output=%s: found a directory; expected the path of a new file", path)
	case err == nil:
		return fmt.Errorf("--output=%s: the file exists already; name a new file", path)
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("--output=%s: %w; expected a new file", path, inputfile.Reason(err))
	}
	return checkFile("output", path)
}

// options returns the options of the runs without faults. The seed of each run is that of the
// previous run plus 1.
func (f *baselineFlags) options(cmd *cobra.Command, s *scenario.Scenario) ([]run.Options, error) {
	var all []run.Options
	if f.run.terminal == nil {
		f.run.terminal = f.run.newTerminal(cmd)
	}
	first, label := f.run.seed, f.run.label
	for i := range f.runs {
		if err := interrupted(cmd.Context()); err != nil {
			return nil, err
		}
		f.run.seed, f.run.label = first+uint64(i), label+fmt.Sprintf(" without faults, %d of %d", i+1, f.runs)
		options, err := f.run.options(cmd, []*scenario.Scenario{explore.WithoutFaults(s)})
		if err != nil {
			return nil, err
		}
		all = append(all, options...)
	}
	return all, nil
}

// learnFrom makes the runs without faults. If all of them completed, it writes what they have in
// common (the baseline) to a file. The argument workload is the hash of the workload, which the
// file then has. learnFrom returns exitFail if a check failed in a run, and exitPass otherwise.
func (f *baselineFlags) learnFrom(cmd *cobra.Command, all []run.Options, workload string, parallel *campaign.Limit) (int, error) {
	var attempts []campaign.Attempt
	for _, o := range all {
		attempts = append(attempts, discardInterrupted(func(ctx context.Context) (*reports.Run, error) { return run.Run(ctx, o) }))
	}
	var runs []reports.Run
	var histories []iter.Seq2[*history.Record, error]
	err := campaign.RunParallel(cmd.Context(), parallel, seriesOf(attempts), func(_ int, r *reports.Run, err error) error {
		interrupted := err != nil && cmd.Context().Err() != nil
		if interrupted && (r == nil || r.Verdict != check.Fail) {
			return nil
		}
		if r != nil {
			runs = append(runs, *r)
			histories = append(histories, history.ReadFile(run.HistoryFile(r.Directory)))
		}
		return err
	})
	if err == nil && len(runs) < len(all) {
		err = fmt.Errorf("interrupted after %d of %d runs without faults", len(runs), len(all))
	}
	failed := slices.DeleteFunc(runs, func(r reports.Run) bool { return r.Verdict != check.Fail }) // print only failed runs, because most runs without faults have the verdict unknown
	code := exitPass
	if len(failed) > 0 {
		code = exitFail
	}
	if err != nil {
		err = fmt.Errorf("%w; no baseline was written", err)
	}
	if err := errors.Join(err, printVerdicts(cmd.OutOrStdout(), failed)); err != nil {
		return code, &unfinishedError{err}
	}
	learnt, err := baseline.Learn(histories...)
	if err != nil {
		return code, &unfinishedError{err}
	}
	learnt.Workload = workload
	if err := learnt.WriteNew(f.output); err != nil {
		return code, &unfinishedError{fmt.Errorf("writing the baseline: %w", err)}
	}
	fmt.Fprintf(cmd.OutOrStdout(), "wrote %s; facts about objects at the end of a run: %d; objects that the subject created or deleted: %d; values in which the runs differ: %d\n",
		f.output, len(learnt.End), len(learnt.Effects), learnt.End.Random()+learnt.Effects.Random())
	return code, nil
}

// loadBaseline returns the baseline in the file of --baseline, or nil if the flag is not set. A
// baseline says what runs without faults have in common. loadBaseline returns an error if there
// are several scenarios, or if the baseline belongs to another scenario or to another workload.
func loadBaseline(path string, scenarios []*scenario.Scenario) (*baseline.Baseline, error) {
	if path == "" {
		return nil, nil
	}
	if len(scenarios) != 1 {
		return nil, fmt.Errorf("--baseline: the command line selects %d scenarios; expected exactly one", len(scenarios))
	}
	b, err := baseline.Read(path)
	if err != nil {
		return nil, fmt.Errorf("--baseline: %w", inputfile.WithExpected(err, "a baseline, as \"gauntlet baseline\" writes it"))
	}
	if name := scenarios[0].Name; b.Scenario != name {
		return nil, fmt.Errorf("--baseline=%s: found the baseline of scenario %s; expected the baseline of scenario %s", path, b.Scenario, name)
	}
	if workload := scenarios[0].WorkloadHash(); b.Workload != "" && b.Workload != workload {
		return nil, fmt.Errorf("--baseline=%s: field workload: found %s, the hash of another workload; expected %s, the hash of the steps and the number of nodes in scenario %s; create the baseline again with \"gauntlet baseline\"", path, b.Workload, workload, b.Scenario)
	}
	return b, nil
}

// compareWith sets the baseline of all runs, which comes from a file. It prints a warning for each run
// of another subject.
func (f *runFlags) compareWith(cmd *cobra.Command, options []run.Options, learnt *baseline.Baseline, file string) {
	for i := range options {
		options[i].Baseline = learnt
		if warning := otherSubject(learnt, options[i].Target.String()); warning != "" {
			fmt.Fprintf(cmd.ErrOrStderr(), "warning: --baseline=%s: %s\n", file, warning)
		}
	}
}

// otherSubject returns a warning of one line if a baseline was learned with another subject. It
// returns "" if the baseline is nil or does not name its subject.
func otherSubject(b *baseline.Baseline, subject string) string {
	if b == nil || b.Subject == "" || b.Subject == subject {
		return ""
	}
	return fmt.Sprintf("found the baseline of the subject %s; expected %s; the checks also report how the two subjects differ without faults", b.Subject, subject)
}
