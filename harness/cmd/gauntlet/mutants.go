package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/embedded"
	"github.com/kube-gauntlet/gauntlet/harness/mutant"
	mutants "github.com/kube-gauntlet/gauntlet/harness/mutant/library"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// mutantsFlags are the flags of `gauntlet mutants`.
type mutantsFlags struct {
	runs     runFlags
	tree     string
	missing  bool
	keepRuns bool
}

func newMutants(code *int) *cobra.Command {
	var flags mutantsFlags
	cmd := &cobra.Command{
		Use:   "mutants [ID…]",
		Short: "Break controllers on purpose and see which check catches each",
		Long: `Break controllers on purpose, by small edits of their source, and run each of them
through the scenarios that should show it, until a check fails. None means all.

It needs this project's tree and the go command, and changes nothing there. What
became of each goes to the directory mutants, as outcomes.json, and with what earlier
calls found, there or in the tree, as the table TABLE.md; so do the executables and
runs of those that were not caught. The exit status is 1 when a check missed a mutant that
it is known to catch, and 2 when the unbroken controllers did not pass.`,
		RunE: func(cmd *cobra.Command, ids []string) error {
			all, err := selectMutants(ids)
			if err != nil {
				return err
			}
			*code, err = flags.run(cmd, all)
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&flags.tree, "tree", ".", "the top of this project's `directory`")
	f.BoolVar(&flags.missing, "missing", false, "only those that have not been caught yet, as they are now")
	f.BoolVar(&flags.keepRuns, "keep-runs", false, "keep every run, to be judged again when a check changes")
	f.Uint64Var(&flags.runs.seed, "seed", 1, "where the random draws of every run start")
	f.StringVar(&flags.runs.out, "out", "out", "the `directory` that the directory mutants is made in")
	f.IntVar(&flags.runs.parallel, "parallel", 0, "how many builds and runs there are at the same time; 0 is what cores and memory allow")
	upstreamDirFlag(f, &flags.runs.upstreamDir)
	return cmd
}

// selectMutants are those of these IDs, or all.
func selectMutants(ids []string) ([]mutant.Mutant, error) {
	all := mutants.All()
	if len(ids) == 0 {
		return all, nil
	}
	var selected []mutant.Mutant
	for _, id := range ids {
		i := slices.IndexFunc(all, func(m mutant.Mutant) bool { return m.ID == id })
		if i < 0 {
			return nil, fmt.Errorf("mutant %q: expected one of %s", id, strings.Join(mutants.IDs(), ", "))
		}
		selected = append(selected, all[i])
	}
	return selected, nil
}

// run tries mutants, and returns what that amounts to.
func (f *mutantsFlags) run(cmd *cobra.Command, selected []mutant.Mutant) (int, error) {
	f.runs.provider, f.runs.terminal = "embedded", newTerminal(cmd.ErrOrStderr())
	parallel, err := f.runs.abreast()
	if err != nil {
		return exitPass, err
	}
	binaries, err := embedded.FindBinaries(f.runs.upstreamDir)
	if err != nil {
		return exitPass, &unfinishedError{err}
	}
	_, ours, err := executables()
	if err != nil {
		return exitPass, err
	}
	f.runs.out = filepath.Join(f.runs.out, "mutants")
	if err := os.MkdirAll(f.runs.out, 0o755); err != nil {
		return exitPass, &unfinishedError{err}
	}
	outcomes, err := readOutcomes(mutants.All(), f.outcomesFile(), filepath.Join(f.tree, "harness", "mutant", "outcomes.json"))
	if err != nil {
		return exitPass, err
	}
	if f.missing {
		selected = slices.DeleteFunc(selected, func(m mutant.Mutant) bool { return m.StateOf(outcomes[m.ID]) == mutant.Detected })
	}
	workshop := &mutant.Builder{Tree: f.tree, Dir: filepath.Join(f.runs.out, "bin")}
	code := exitPass
	trial := mutant.Trial{
		Mutants: selected, Seed: f.runs.seed, Parallel: parallel, Now: time.Now,
		Unmodified: func(base mutant.Base) (string, error) {
			if base == mutant.Upstream {
				return binaries.KubeControllerManager, nil
			}
			return ours, nil
		},
		Build: workshop.Build,
		Run: func(ctx context.Context, label, executable, name string) (*reports.Run, error) {
			return f.runOne(ctx, cmd, label, executable, name)
		},
		Done: func(o mutant.Outcome) error {
			m := selected[slices.IndexFunc(selected, func(m mutant.Mutant) bool { return m.ID == o.Mutant })]
			if o.State == mutant.NotDetected && m.OpenReason == "" {
				code = exitFail
			}
			outcomes[o.Mutant] = o
			fmt.Fprintln(cmd.OutOrStdout(), o)
			return errors.Join(f.tidy(workshop, &m, o), writeJSON(f.outcomesFile(), outcomes))
		},
	}
	err = errors.Join(trial.Do(cmd.Context()), f.writeTable(outcomes))
	fmt.Fprintf(cmd.OutOrStdout(), "\n%s\n", mutant.CountStates(selected, outcomes))
	if err != nil {
		return code, &unfinishedError{err}
	}
	return code, nil
}

func (f *mutantsFlags) outcomesFile() string { return filepath.Join(f.runs.out, "outcomes.json") }

// runOne runs an executable through a scenario. Of runs that passed for the
// unbroken, or failed for a mutant, nothing is kept unless it is asked for.
func (f *mutantsFlags) runOne(ctx context.Context, cmd *cobra.Command, label, executable, name string) (*reports.Run, error) {
	s, err := mutants.Scenario(name)
	if err != nil {
		return nil, err
	}
	flags := f.runs
	flags.subject, flags.label = "exec:"+executable, " "+label
	options, err := flags.options(cmd, []*scenario.Scenario{s})
	if err != nil {
		return nil, err
	}
	judged, err := attempt(options[0])(ctx)
	if judged == nil {
		return nil, err
	}
	wanted := check.Fail
	if strings.HasPrefix(label, mutant.UnmodifiedLabel) {
		wanted = check.Pass
	}
	if judged.Verdict == wanted && !f.keepRuns {
		err = errors.Join(err, os.RemoveAll(judged.Directory))
	}
	return judged, err
}

// tidy removes the executable of a mutant that was caught.
func (f *mutantsFlags) tidy(w *mutant.Builder, m *mutant.Mutant, o mutant.Outcome) error {
	if o.State != mutant.Detected {
		return nil
	}
	return os.Remove(w.Executable(m))
}

// writeTable writes where all mutants stand.
func (f *mutantsFlags) writeTable(outcomes map[string]mutant.Outcome) error {
	var table bytes.Buffer
	if err := mutant.Table(&table, mutants.All(), outcomes); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(f.runs.out, "TABLE.md"), table.Bytes(), 0o644)
}

// readOutcomes reads what earlier calls have found, by the IDs of mutants: of each the
// latest that is of the mutant as it is, from whichever of these files has it.
func readOutcomes(all []mutant.Mutant, paths ...string) (map[string]mutant.Outcome, error) {
	outcomes := map[string]mutant.Outcome{}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var found map[string]mutant.Outcome
		if err := json.Unmarshal(content, &found); err != nil {
			return nil, fmt.Errorf("%s: expected outcomes of mutants: %w", path, err)
		}
		for i := range all {
			id, of := all[i].ID, all[i].Fingerprint()
			known, has := outcomes[id]
			if now, found := found[id]; found && now.Of == of && (!has || now.When.After(known.When)) {
				outcomes[id] = now
			}
		}
	}
	return outcomes, nil
}

// writeJSON writes a value as a file, all of it or nothing.
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
