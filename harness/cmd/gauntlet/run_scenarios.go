package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
	"github.com/kube-gauntlet/gauntlet/harness/internal/operator"
	"github.com/kube-gauntlet/gauntlet/harness/nearest"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/scenario/library"
)

// standardInput is the scenario name with which "gauntlet run" and "gauntlet validate" read a
// scenario from standard input.
const standardInput = "-"

// scenarios returns the scenarios that the command line selects, which are one of these:
//
//   - the named scenarios
//   - one generated scenario, if a flag such as --seed or --profile is set and no scenario is
//     named
//   - otherwise, the built-in scenarios of the tier that the provider supports
func (f *runFlags) scenarios(cmd *cobra.Command, names []string) ([]*scenario.Scenario, error) {
	if len(names) == 0 && isSubjectFile(f.subject) {
		return nil, errSubjectFileWithoutScenario(f.subject)
	}
	shaped := f.generated.changed(cmd)
	if err := checkTier(cmd, names, shapingFlags...); err != nil {
		return nil, err
	}
	if err := checkSubject("subject", f.subject); err != nil {
		return nil, err // report a wrong subject before any warnings about skipped scenarios
	}
	switch {
	case len(names) > 0 && shaped:
		return nil, fmt.Errorf("--profile, --duration and --prefer-uncovered apply to generated scenarios only: omit these flags, or omit the scenario %s", names[0])
	case len(names) == 0 && (shaped || cmd.Flags().Changed("seed") && !cmd.Flags().Changed("tier")):
		s, err := f.generated.generate(seedOf(f.seed), f.provider)
		return []*scenario.Scenario{s}, err
	}
	return f.loadScenarios(cmd.Context(), names, cmd.ErrOrStderr())
}

// supportedScenarios returns the built-in scenarios of the tier (--tier) that the provider
// supports. For each other scenario of the tier, it prints why the provider does not support it.
func (f *runFlags) supportedScenarios(warnings io.Writer) []*scenario.Scenario {
	return slices.DeleteFunc(library.InTier(library.Tier(f.tier)), func(s *scenario.Scenario) bool {
		err := run.Supported(s, f.provider)
		if err != nil {
			fmt.Fprintf(warnings, "skipping scenario %s: %v\n", s.Name, err)
		}
		return err != nil
	})
}

// loadScenarios returns the scenarios with the given names or file paths. Without names, it returns
// the built-in scenarios of the tier (--tier) that the provider supports.
func (f *runFlags) loadScenarios(ctx context.Context, names []string, warnings io.Writer) ([]*scenario.Scenario, error) {
	if len(names) == 0 {
		if _, err := providers.Named(f.provider); err != nil {
			return nil, err
		}
		return f.supportedScenarios(warnings), nil
	}
	var all []*scenario.Scenario
	for _, name := range names {
		var s *scenario.Scenario
		var err error
		if name == standardInput && f.stdin != nil {
			s, err = f.readScenario(warnings)
		} else {
			s, err = loadScenario(ctx, name, warnings, f.subject)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// loadScenario returns the built-in scenario with the given name. If there is no such scenario, it
// reads the YAML file with the name as its path. It prints a warning for each old name that the
// scenario uses. The argument subjects has the values of --subject with which the scenario may run.
func loadScenario(ctx context.Context, name string, warnings io.Writer, subjects ...string) (*scenario.Scenario, error) {
	s, ok := library.Find(name)
	var err error
	if !ok {
		s, err = orInterrupted(ctx, func() (*scenario.Scenario, error) { return scenario.Load(name, validatorFor(subjects...)) })
	}
	if err == nil {
		printWarnings(s, warnings)
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil, noScenario(name)
	}
	return s, err
}

// validatorFor returns the function that validates a scenario for some values of --subject. The controllers of a
// subject file are not known yet. Therefore setOperators later checks what the scenario can reach.
func validatorFor(subjects ...string) func(*scenario.Scenario) error {
	if slices.ContainsFunc(subjects, isSubjectFile) {
		return run.Validate
	}
	return validateBeforeStart
}

// validateBeforeStart returns an error with all reasons not to start a run of the scenario. It also checks the manifests
// in the workload.
func validateBeforeStart(s *scenario.Scenario) error {
	if err := run.ValidateBeforeStart(s); err != nil {
		return err
	}
	return operator.CheckScenario(s)
}

// printWarnings prints the warnings of a scenario, such as a warning for each old name that the
// scenario uses.
func printWarnings(s *scenario.Scenario, warnings io.Writer) {
	for _, warning := range s.Warnings() {
		fmt.Fprintln(warnings, "warning:", warning)
	}
}

// noScenario returns the error for a name that is neither a built-in scenario nor a file.
func noScenario(name string) error {
	if name == standardInput {
		return errors.New(`scenario "-": only "gauntlet run" and "gauntlet validate" read a scenario from standard input; expected a file or a built-in scenario`)
	}
	found := "no such file, and no built-in scenario of this name"
	if strings.ContainsRune(name, filepath.Separator) || slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name)) {
		found = "no such file"
	}
	var known []string
	for _, s := range library.All() {
		known = append(known, s.Name)
	}
	if target := inputfile.MissingTarget(name); target != "" {
		return fmt.Errorf("scenario %q: found a symbolic link that leads nowhere%s; expected a file", name, target)
	}
	base := filepath.Base(name)
	if dashless := strings.TrimLeft(name, "\u2010\u2011\u2012\u2013\u2014\u2212"); dashless != name {
		return fmt.Errorf("scenario %q: found a dash that is not the character -; did you mean --%s?", name, dashless)
	}
	if strings.Contains(name, "://") {
		return fmt.Errorf("scenario %q: found a URL; expected the path of a file, or a built-in scenario", name)
	}
	advice := nearest.Suggestion(strings.TrimSuffix(base, filepath.Ext(base)), known)
	if similar := inputfile.SimilarFile(name); found == "no such file" && similar != "" {
		advice = "; did you mean " + filepath.Join(filepath.Dir(name), similar) + "?"
	}
	if advice == "" {
		advice = "; \"gauntlet list scenarios\" lists the built-in scenarios"
	}
	return fmt.Errorf("scenario %q: %s%s", name, found, advice)
}
