package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/kube-gauntlet/gauntlet/harness/mutant"
	mutants "github.com/kube-gauntlet/gauntlet/harness/mutant/library"
	"github.com/kube-gauntlet/gauntlet/harness/nearest"
	"github.com/kube-gauntlet/gauntlet/harness/scenario/library"
)

// matrixFlags has the values of the flags that "gauntlet mutants matrix" has in addition to those
// of "gauntlet mutants".
type matrixFlags struct {
	budget    time.Duration
	tier      tierFlag
	scenarios []string
}

func newMutantsMatrix() *cobra.Command {
	flags := mutantsFlags{matrix: matrixFlags{tier: tierFlag(library.Default)}}
	cmd := &cobra.Command{
		Use:   "matrix [ID…]",
		Short: "Measure which scenarios catch which mutants",
		Long: `Run mutants in the scenarios of a tier, the most promising first, until one of them
catches the mutant. Without ID, all mutants run that no saved run shows as caught. The
unmodified controllers run each scenario once.

The command starts no run after --budget has passed. The next call continues, because
the results are kept in mutants/matrix.json. It also writes mutants/TABLE.md.`,
		Example: `  gauntlet mutants matrix
  gauntlet mutants matrix R1 D5 --scenarios=burst,rollout`,
		ValidArgsFunction: completeMutants,
		RunE: func(cmd *cobra.Command, ids []string) error {
			selected, err := selectMutants(ids)
			if err != nil {
				return err
			}
			if err := flags.matrix.check(cmd); err != nil {
				return err
			}
			return flags.fillMatrix(cmd, selected)
		},
	}
	f := cmd.Flags()
	flags.add(f)
	f.DurationVar(&flags.matrix.budget, "budget", time.Hour, "the time after which no new run starts")
	flags.matrix.tier.add(f)
	f.StringSliceVar(&flags.matrix.scenarios, "scenarios", nil, "the `names` of the scenarios, instead of a tier")
	cmd.MarkFlagsMutuallyExclusive("tier", "scenarios")
	return cmd
}

func newMutantsTiers() *cobra.Command {
	var tree string
	var write bool
	cmd := &cobra.Command{
		Use:   "tiers",
		Short: "Print which scenarios the tiers quick and default should have",
		Long: `Choose the scenarios of the tiers quick and default from the saved runs of mutants, and
print the choice. The next scenario is always the one that adds the most for each
second: mutants that it catches, checks that it exercises, and types of faults. Quick
ends after 4 minutes of runs. Default ends when it catches 97 % of the mutants that any
scenario catches, and has all checks and types of faults.

The command runs nothing. The results are those of "gauntlet mutants" and "gauntlet
mutants matrix" in the source tree.`,
		Example: `  gauntlet mutants tiers`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkTree(tree); err != nil {
				return err
			}
			outcomes, err := readOutcomes(mutants.All(), filepath.Join(tree, "harness", "mutant", "outcomes.json"))
			if err != nil {
				return err
			}
			matrix, err := readMatrix(outcomes, matrixOfTree(tree))
			if err != nil {
				return err
			}
			tiers := mutants.ChooseTiers(matrix)
			if write {
				file := filepath.Join(tree, "harness", "scenario", "library", "tiers.txt")
				if err := os.WriteFile(file, []byte(mutants.TiersFile(tiers)), 0o644); err != nil {
					return err
				}
			}
			return mutants.WriteTiers(cmd.OutOrStdout(), tiers, matrix)
		},
	}
	treeFlag(cmd.Flags(), &tree)
	cmd.Flags().BoolVar(&write, "write", false, "write the choice to tiers.txt of the scenario library in the source tree")
	return cmd
}

// fillMatrix makes the runs whose results are missing in the matrix. The matrix says which
// mutants each scenario detects. A mutant is a controller that is broken on purpose. fillMatrix
// starts no run after the time of --budget has passed.
func (f *mutantsFlags) fillMatrix(cmd *cobra.Command, selected []mutant.Mutant) error {
	names, err := f.matrix.names()
	if err != nil {
		return err
	}
	trial, builder, err := f.prepare(cmd, selected)
	if err != nil {
		return err
	}
	outcomes, err := f.readAllOutcomes()
	if err != nil {
		return err
	}
	matrix, err := readMatrix(outcomes, matrixOfTree(f.tree), f.matrixFile())
	if err != nil {
		return err
	}
	deadline := time.Now().Add(f.matrix.budget)
	err = trial.Fill(cmd.Context(), &mutant.Gaps{
		Matrix: matrix, Scenarios: names, Texts: mutants.Texts(),
		More:   func() bool { return time.Now().Before(deadline) },
		Save:   func() error { return writeJSON(f.matrixFile(), matrix) },
		Remove: func(m *mutant.Mutant) error { return os.Remove(builder.Executable(m)) },
	})
	if err = errors.Join(err, f.writeTable(outcomes)); err != nil {
		return &unfinishedError{err}
	}
	fmt.Fprintf(cmd.OutOrStdout(), "mutants that these %d scenarios catch: %s\n", len(names), matrix.Rate(selected, names))
	return nil
}

// check returns an error if --budget is negative, or if --scenarios names no scenario.
func (f *matrixFlags) check(cmd *cobra.Command) error {
	if len(f.scenarios) == 0 && cmd.Flags().Changed("scenarios") {
		return errors.New("--scenarios: found no scenario; name one or more, or omit the flag")
	}
	return checkBudget(f.budget)
}

// names returns the names of the scenarios that the flags select. If the flags select a tier (set
// of scenarios), names returns only scenarios that can run on mutants.
func (f *matrixFlags) names() ([]string, error) {
	if len(f.scenarios) == 0 {
		return mutants.Scenarios(library.Tier(f.tier)), nil
	}
	known := mutants.Scenarios(library.Full)
	for i, name := range f.scenarios {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("--scenarios: found %q; expected a built-in scenario that can run on mutants%s", name, cmp.Or(nearest.Suggestion(name, known), `; "gauntlet list scenarios" lists the built-in scenarios`))
		}
		if slices.Contains(f.scenarios[:i], name) {
			return nil, fmt.Errorf("--scenarios: found %q twice; name each scenario once", name)
		}
	}
	return f.scenarios, nil
}

// matrixFile returns the path of the file in which "gauntlet mutants matrix" saves the results of
// all its calls.
func (f *mutantsFlags) matrixFile() string { return filepath.Join(f.runs.out, "matrix.json") }

// matrixOfTree returns the path of the file matrix.json in gauntlet's source tree. This file says
// which mutants each scenario detects.
func matrixOfTree(tree string) string { return filepath.Join(tree, "harness", "mutant", "matrix.json") }

// readMatrix returns the matrix of mutants and scenarios, which says which scenarios detect a
// mutant. It reads the files at paths, and adds the given outcomes of mutants in earlier runs. It
// omits results that are out of date, and ignores files that do not exist.
func readMatrix(outcomes map[string]mutant.Outcome, paths ...string) (*mutant.Matrix, error) {
	all, texts := mutants.All(), mutants.Texts()
	matrix := mutant.NewMatrix()
	matrix.AddOutcomes(all, outcomes, texts)
	for _, path := range paths {
		var read mutant.Matrix
		if err := readJSONIfExists(path, &read, "a matrix of mutants and scenarios"); err != nil {
			return nil, err
		}
		matrix.AddCurrent(&read, all, texts)
	}
	return matrix, nil
}
