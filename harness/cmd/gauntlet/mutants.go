package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kube-gauntlet/gauntlet/harness/baseline"
	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
	"github.com/kube-gauntlet/gauntlet/harness/mutant"
	mutants "github.com/kube-gauntlet/gauntlet/harness/mutant/library"
	"github.com/kube-gauntlet/gauntlet/harness/nearest"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/scenario/library"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// mutantsFlags has the values of the flags of "gauntlet mutants" and its subcommand matrix. These
// commands run mutants, which are controllers that are broken on purpose.
type mutantsFlags struct {
	runs     runFlags
	tree     string // the root directory of the source tree
	missing  bool   // run only mutants that were not detected in their current form
	keepRuns bool
	// general is true if only the general checks count, which need no model of a controller.
	general bool
	// seeds is how many generated scenarios the mutants run in, instead of the scenarios that the
	// mutants name. 0 means the scenarios that the mutants name.
	seeds     int
	generated generateFlags
	drawn     map[string]*scenario.Scenario // the generated scenarios, by name
	matrix    matrixFlags
}

// mutantProviders lists the providers on which mutants can run. A mutant is a controller that is
// broken on purpose.
var mutantProviders = []string{providers.Embedded, providers.Virtual}

func newMutants(code *int) *cobra.Command {
	var flags mutantsFlags
	cmd := &cobra.Command{
		Use:   "mutants [ID…]",
		Short: "Test the checks with controllers that are broken on purpose",
		Long: `Break controllers by small edits of their source, and run each mutant through the
scenarios that should expose it, until a check fails. Without ID, all mutants run.

With --provider=virtual, the runs take seconds in all: they are in virtual time. The
mutants then run in the scenarios that this provider supports. The outcomes go to the
directory mutants-virtual.

With --seeds=N, the mutants run in the scenarios that the seeds 1 to N generate, instead
of their own. Any failed check then counts. The outcomes go to a directory of their own,
such as mutants-virtual-steady, and there is no table.

With --general, only the general checks count, which need no model of a controller. Each
run is compared with runs of the same subject without faults, as for an operator. The
outcomes go to a directory of their own, such as mutants-general. The exit status is
then never 1, and only --keep-runs keeps runs.

The command needs the source tree of this project and the go command; it does not
change the tree. It writes the outcomes to the directory mutants: outcomes.json, and
TABLE.md, which includes the outcomes of earlier calls. The executables and runs of
mutants that no check detected are kept there. The exit status is 1 if no check
detected a mutant that must be detected, and 2 if the unmodified controllers did not
pass.`,
		Example: `  gauntlet mutants
  gauntlet mutants R1 D5
  gauntlet mutants --missing
  gauntlet mutants --provider=virtual --seeds=20 --profile=steady
  gauntlet mutants --provider=virtual --general`,
		ValidArgsFunction: completeMutants,
		Args:              cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, ids []string) error {
			all, err := selectMutants(ids)
			if err != nil {
				return err
			}
			if flags.seeds == 0 && cmd.Flags().Changed("profile") {
				return errors.New("--profile has no effect without --seeds: add --seeds, or omit --profile")
			}
			*code, err = flags.run(cmd, all)
			return err
		},
	}
	f := cmd.Flags()
	flags.add(f)
	f.BoolVar(&flags.missing, "missing", false, "run only mutants that have not been detected in their current form")
	f.StringVar(&flags.runs.provider, "provider", providers.Default(), "the provider of the runs: "+nearest.List(mutantProviders, "or"))
	f.IntVar(&flags.seeds, "seeds", 0, "how many seeds generate the scenarios of the mutants; 0 selects the scenarios that the mutants name")
	flags.generated.addProfile(f)
	f.BoolVar(&flags.general, "general", false, "count only the general checks; they include the comparison with runs without faults")
	f.BoolVar(&flags.keepRuns, "keep-runs", false, "keep all run directories, so that they can be checked again")
	cmd.AddCommand(newMutantsMatrix(), newMutantsTiers())
	return cmd
}

// add adds flags to a command that runs mutants. All such commands have these flags.
func (f *mutantsFlags) add(flags *pflag.FlagSet) {
	treeFlag(flags, &f.tree)
	flags.Uint64Var(&f.runs.seed, "seed", 1, "the seed of every run")
	flags.StringVar(&f.runs.out, "out", "out", "the `directory` in which the directory mutants is created")
	flags.IntVar(&f.runs.parallel, "parallel", 0, "the maximum number of builds and runs at the same time; 0 means as many as cores and memory allow")
	upstreamDirFlag(flags, &f.runs.upstreamDir)
}

// checkTree returns an error if the value of the flag --tree is not the source tree of gauntlet.
func checkTree(tree string) error {
	dir := filepath.Join(tree, "harness", "mutant")
	if _, err := os.Stat(dir); err != nil {
		return fmt.Errorf("--tree=%s: %s: %w; expected the root directory of gauntlet's source tree", tree, dir, inputfile.Reason(err))
	}
	return nil
}

// treeFlag adds to a command the flag --tree, which names the source tree of gauntlet.
func treeFlag(f *pflag.FlagSet, tree *string) {
	f.StringVar(tree, "tree", ".", "the root `directory` of the source tree")
}

// selectMutants returns the mutants with the given IDs, which must be different. If ids is empty,
// it returns all mutants.
func selectMutants(ids []string) ([]mutant.Mutant, error) {
	all := mutants.All()
	if len(ids) == 0 {
		return all, nil
	}
	var selected []mutant.Mutant
	for n, id := range ids {
		if slices.Contains(ids[:n], id) {
			return nil, fmt.Errorf("mutant %q: found the mutant twice; name each mutant once", id)
		}
		i := slices.IndexFunc(all, func(m mutant.Mutant) bool { return m.ID == id })
		if i < 0 {
			advice := nearest.Suggestion(id, slices.Concat(mutants.IDs(), []string{"matrix", "tiers"}))
			if advice == "" {
				advice = "; harness/mutant/TABLE.md lists the mutants"
			}
			return nil, fmt.Errorf("mutant %q: no such mutant%s", id, advice)
		}
		selected = append(selected, all[i])
	}
	return selected, nil
}

// run builds and runs the selected mutants, and returns the exit code. The code is exitFail if at
// least one mutant was not detected. Mutants with an OpenReason, which no check detects yet, do not
// count. With --general, the code is never exitFail.
func (f *mutantsFlags) run(cmd *cobra.Command, selected []mutant.Mutant) (int, error) {
	trial, builder, err := f.prepare(cmd, selected)
	if err != nil {
		return exitPass, err
	}
	outcomes, err := f.readAllOutcomes()
	if err != nil {
		return exitPass, err
	}
	if f.missing {
		trial.Mutants = slices.DeleteFunc(trial.Mutants, func(m mutant.Mutant) bool { return m.StateOf(outcomes[m.ID]) == mutant.Detected })
	}
	selected = trial.Mutants
	code, tried := exitPass, map[string]mutant.Outcome{}
	trial.Done = func(o mutant.Outcome) error {
		m := selected[slices.IndexFunc(selected, func(m mutant.Mutant) bool { return m.ID == o.Mutant })]
		if o.State == mutant.NotDetected && m.OpenReason == "" && !f.general {
			code = exitFail
		}
		outcomes[o.Mutant], tried[o.Mutant] = o, o
		fmt.Fprintln(cmd.OutOrStdout(), o)
		return errors.Join(f.removeExecutable(builder, &m, o), writeJSON(f.outcomesFile(), outcomes))
	}
	err = trial.Do(cmd.Context())
	if f.seeds == 0 && !f.general {
		err = errors.Join(err, f.writeTable(outcomes))
	}
	fmt.Fprintf(cmd.OutOrStdout(), "\n%s\n", mutant.CountStates(selected, tried))
	if err != nil {
		return code, &unfinishedError{err}
	}
	return code, nil
}

// prepare creates the output directory. It returns a Trial, which runs the selected mutants in
// their scenarios, and a Builder, which builds these mutants. The caller must set the field Done of
// the Trial.
func (f *mutantsFlags) prepare(cmd *cobra.Command, selected []mutant.Mutant) (*mutant.Trial, *mutant.Builder, error) {
	f.runs.provider, f.runs.terminal = cmp.Or(f.runs.provider, providers.Default()), f.runs.newTerminal(cmd)
	if !slices.Contains(mutantProviders, f.runs.provider) {
		return nil, nil, fmt.Errorf("provider %q: expected %s", f.runs.provider, nearest.List(mutantProviders, "or"))
	}
	parallel, err := f.runs.parallelRuns()
	if err != nil {
		return nil, nil, err
	}
	dir := "mutants"
	if f.seeds != 0 {
		if selected, err = f.withGenerated(cmd.Context(), selected); err != nil {
			return nil, nil, err
		}
	}
	if f.virtual() {
		dir, selected = "mutants-virtual", f.virtualMutants(selected)
		if len(selected) == 0 {
			return nil, nil, errors.New("found no mutant that can run in virtual time; expected a mutant with a scenario that the provider virtual supports")
		}
	}
	if f.seeds != 0 {
		dir += "-" + f.generated.profile
	}
	if f.general {
		dir, selected = dir+"-general", withGeneralChecks(selected)
	}
	f.runs.out = filepath.Join(f.runs.out, dir)
	if err := checkDirectory("out", f.runs.out); err != nil {
		return nil, nil, err
	}
	builder := &mutant.Builder{Tree: f.tree, Dir: filepath.Join(f.runs.out, "bin"), Virtual: f.virtual()}
	if err := builder.Preflight(selected); err != nil {
		return nil, nil, err
	}
	upstream, err := providers.ControllerManager(cmd.Context(), f.runs.upstreamDir)
	if err != nil {
		return nil, nil, buildError(f.runs.upstreamDir, err)
	}
	gauntlet, ours, err := executables(cmd.Context(), subject.Ours)
	if err != nil {
		return nil, nil, &unfinishedError{err}
	}
	if f.virtual() {
		ours = gauntlet // in virtual time, gauntlet-virtual beside gauntlet runs our controllers
	}
	if err := os.MkdirAll(f.runs.out, 0o755); err != nil {
		return nil, nil, &unfinishedError{err}
	}
	return &mutant.Trial{
		Mutants: selected, Parallel: parallel.Current(), Now: time.Now,
		Unmodified: func(base mutant.Base) (string, error) {
			if base == mutant.Upstream && !f.virtual() {
				return upstream, nil
			}
			return ours, nil
		},
		Build: builder.Build,
		Run: func(ctx context.Context, subject mutant.Subject, name string) (*reports.Run, error) {
			return f.runOne(ctx, cmd, subject, name)
		},
	}, builder, nil
}

// virtual reports whether the mutants run in virtual time, with the provider virtual.
func (f *mutantsFlags) virtual() bool { return f.runs.provider == providers.Virtual }

// virtualMutants returns the mutants that can run in virtual time. Each of them has only the
// scenarios that the provider virtual supports.
func (f *mutantsFlags) virtualMutants(all []mutant.Mutant) (selected []mutant.Mutant) {
	for _, m := range all {
		m.Scenarios = slices.DeleteFunc(slices.Clone(m.Scenarios), func(name string) bool {
			s, err := f.scenarioNamed(name)
			return err != nil || run.Supported(s, providers.Virtual) != nil
		})
		if len(m.Scenarios) > 0 {
			selected = append(selected, m)
		}
	}
	return selected
}

// withGenerated returns the mutants with generated scenarios instead of the scenarios that the
// mutants name. Any check may then detect a mutant, because the scenarios are not made for a
// mutant.
func (f *mutantsFlags) withGenerated(ctx context.Context, all []mutant.Mutant) ([]mutant.Mutant, error) {
	if err := checkCount("seeds", f.seeds, 0, generatedMax); err != nil {
		return nil, err
	}
	if f.missing {
		return nil, errors.New("found both --missing and --seeds; expected at most one of them")
	}
	var names, texts, checks []string
	f.runs.seed, f.drawn = 0, map[string]*scenario.Scenario{} // each scenario has its own seed
	for seed := range uint64(f.seeds) {
		if err := interrupted(ctx); err != nil {
			return nil, err
		}
		s, err := f.generated.generate(seed+1, f.runs.provider)
		if err != nil {
			return nil, err
		}
		text, err := s.Marshal()
		if err != nil {
			return nil, err
		}
		name := fmt.Sprintf("seed-%d", s.Seed)
		f.drawn[name] = s
		names, texts = append(names, name), append(texts, string(text))
	}
	for _, c := range check.All {
		checks = append(checks, c.ID)
	}
	return changed(all, func(m *mutant.Mutant) { m.Scenarios, m.Texts, m.Checks = names, texts, checks }), nil
}

// withGeneralChecks returns the mutants with all general checks instead of the checks that the
// mutants name.
func withGeneralChecks(all []mutant.Mutant) []mutant.Mutant {
	var checks []string
	for _, c := range check.All {
		if c.Scope.General() {
			checks = append(checks, c.ID)
		}
	}
	return changed(all, func(m *mutant.Mutant) { m.Checks = checks })
}

// changed returns copies of the mutants. Its argument change is a function that changes the copy
// of a mutant. changed does not call it for mutants whose bug no check can observe.
func changed(all []mutant.Mutant, change func(*mutant.Mutant)) []mutant.Mutant {
	all = slices.Clone(all)
	for i := range all {
		if all[i].UnobservableReason == "" {
			change(&all[i])
		}
	}
	return all
}

// scenarioNamed returns a generated scenario, such as seed-7, or a scenario of the library. The
// caller may change the returned scenario.
func (f *mutantsFlags) scenarioNamed(name string) (*scenario.Scenario, error) {
	if s, ok := f.drawn[name]; ok {
		return s.Clone(), nil
	}
	s, ok := library.Find(name)
	if !ok {
		return nil, fmt.Errorf("scenario %q: not a scenario of the library; \"gauntlet list scenarios\" lists them", name)
	}
	return s, nil
}

// outcomesFile returns the path of the file with the outcomes of all calls of "gauntlet mutants".
// An outcome says which check detected a mutant.
func (f *mutantsFlags) outcomesFile() string { return filepath.Join(f.runs.out, "outcomes.json") }

// runOne runs a scenario on a mutant or on the unmodified controllers, and returns the run.
// Without --keep-runs, it deletes the directory of a run with the expected verdict: fail for a
// mutant, pass or known-upstream for unmodified controllers. With --general, it deletes every run
// directory.
func (f *mutantsFlags) runOne(ctx context.Context, cmd *cobra.Command, subject mutant.Subject, name string) (*reports.Run, error) {
	s, err := f.scenarioNamed(name)
	if err != nil {
		return nil, err
	}
	flags := f.runs
	flags.subject, flags.label = "exec:"+subject.Executable, " "+subject.String()
	if f.virtual() {
		flags.subject = string(subject.Base)
	}
	options, err := flags.options(cmd, []*scenario.Scenario{s})
	if err != nil {
		return nil, err
	}
	if f.general {
		if options[0].Baseline, err = f.learnBaseline(ctx, cmd, flags, subject, s); err != nil {
			return nil, err
		}
	}
	f.setSubject(&options[0], subject)
	result, err := discardInterrupted(attempt(options[0]))(ctx)
	if result == nil {
		return nil, err
	}
	if (subject.Expects(result.Verdict) || f.general) && !f.keepRuns {
		err = errors.Join(err, os.RemoveAll(result.Directory))
	}
	return result, err
}

// setSubject sets the options of a run that depend on the mutant. These are the program to run in
// virtual time, and whether the controllers were built from upstream's source.
func (f *mutantsFlags) setSubject(o *run.Options, subject mutant.Subject) {
	if f.virtual() {
		o.Gauntlet = subject.Executable
	}
	o.BuiltFromUpstream = subject.Base == mutant.Upstream
}

// learnBaseline runs a scenario three times without faults, on a mutant or on the unmodified
// controllers. It returns what these runs have in common. Without --keep-runs, it deletes their
// run directories.
func (f *mutantsFlags) learnBaseline(ctx context.Context, cmd *cobra.Command, flags runFlags, subject mutant.Subject, s *scenario.Scenario) (*baseline.Baseline, error) {
	const runs = 3
	all, err := (&baselineFlags{run: flags, runs: runs}).options(cmd, s)
	if err != nil {
		return nil, err
	}
	var histories []iter.Seq2[*history.Record, error]
	for _, o := range all {
		f.setSubject(&o, subject)
		result, err := run.Run(ctx, o)
		if result != nil {
			if !f.keepRuns {
				defer os.RemoveAll(result.Directory)
			}
			histories = append(histories, history.ReadFile(run.HistoryFile(result.Directory)))
		}
		if err != nil {
			return nil, err
		}
	}
	return baseline.Learn(histories...)
}

// removeExecutable removes the executable of the mutant m if a check has detected the mutant.
// With --general, it always removes the executable. It keeps the executable of a mutant that was
// not detected, so that users can investigate. The Builder w has built the executables.
func (f *mutantsFlags) removeExecutable(w *mutant.Builder, m *mutant.Mutant, o mutant.Outcome) error {
	if o.State != mutant.Detected && !f.general {
		return nil
	}
	return os.RemoveAll(filepath.Join(w.Dir, m.ID))
}

// readAllOutcomes returns the latest outcome of each mutant. An outcome says whether a check
// detected the mutant. readAllOutcomes reads the files in the source tree and in the output
// directory.
func (f *mutantsFlags) readAllOutcomes() (map[string]mutant.Outcome, error) {
	if f.virtual() || f.seeds != 0 || f.general { // the tree has no outcomes of such runs
		return readOutcomes(mutants.All(), f.outcomesFile())
	}
	return readOutcomes(mutants.All(), f.outcomesFile(), filepath.Join(f.tree, "harness", "mutant", "outcomes.json"))
}

// writeTable writes TABLE.md, which says for each mutant whether a check detects it, and in the
// scenarios of which tiers. A tier is a set of built-in scenarios.
func (f *mutantsFlags) writeTable(outcomes map[string]mutant.Outcome) error {
	matrix, err := readMatrix(outcomes, matrixOfTree(f.tree), f.matrixFile())
	if err != nil {
		return err
	}
	var table bytes.Buffer
	if err := mutant.Table(&table, mutants.All(), outcomes, mutants.Rates(matrix)); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(f.runs.out, "TABLE.md"), table.Bytes(), 0o644)
}

// readOutcomes reads the files at paths and returns the latest outcome of each mutant. An outcome
// says whether a check detected the mutant. The key is the mutant's ID.
//
// readOutcomes ignores files that do not exist. It also ignores outcomes that are out of date
// because the mutant has changed.
func readOutcomes(all []mutant.Mutant, paths ...string) (map[string]mutant.Outcome, error) {
	outcomes := map[string]mutant.Outcome{}
	for _, path := range paths {
		var found map[string]mutant.Outcome
		if err := readJSONIfExists(path, &found, "a file of mutant outcomes"); err != nil {
			return nil, err
		}
		for i := range all {
			id, fingerprint := all[i].ID, all[i].Fingerprint()
			known, has := outcomes[id]
			if now, found := found[id]; found && now.Fingerprint == fingerprint && (!has || now.When.After(known.When)) {
				outcomes[id] = now
			}
		}
	}
	return outcomes, nil
}

// readJSONIfExists decodes the JSON file at path into a variable. The argument into points to this
// variable. If the file does not exist, the variable stays unchanged. The argument expected
// describes the content in error messages.
func readJSONIfExists(path string, into any, expected string) error {
	content, err := inputfile.Read(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(content, into); err != nil {
		place, reason := inputfile.Locate(path, content, err, into)
		return fmt.Errorf("%s: expected %s: %s", place, expected, reason)
	}
	return nil
}

// writeJSON writes a value as JSON to the file at path. It replaces an existing file only after
// the new content has been written completely.
func writeJSON(path string, value any) error {
	content, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", append(content, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
