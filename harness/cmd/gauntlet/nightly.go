package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/hunt"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// nightlyFlags are the flags of `gauntlet nightly`. Those of the runs are the
// same as those of `gauntlet run`.
type nightlyFlags struct {
	runs     runFlags
	subjects []string
	duration time.Duration
}

func newNightly(code *int) *cobra.Command {
	flags := nightlyFlags{}
	cmd := &cobra.Command{
		Use:   "nightly [SCENARIO…]",
		Short: "Run scenarios with one seed after another until time is up",
		Long: `Run scenarios on every subject, with one seed after another, until time is up.

Runs that did not pass are kept. At the end each distinct failure is printed in
a line, with the first run that showed it; the same lines, and the reports of the
runs that were kept, are in the directory nightly-TIME beside them.`,
		RunE: func(cmd *cobra.Command, names []string) error {
			var err error
			*code, err = flags.hunt(cmd, names)
			return err
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&flags.subjects, "subjects", []string{"ours", "upstream"}, "what is under test, in turn: see --subject of gauntlet run")
	f.DurationVar(&flags.duration, "duration", 8*time.Hour, "how long runs are begun")
	f.Uint64Var(&flags.runs.seed, "seed", 0, "the first round's seed; each round has the next one; 0 takes a random one")
	flags.runs.shared(f)
	return cmd
}

// hunt runs until time is up, and returns what the verdicts amount to.
func (f *nightlyFlags) hunt(cmd *cobra.Command, names []string) (int, error) {
	if f.duration <= 0 {
		return exitPass, fmt.Errorf("--duration: found %s; expected more than 0", f.duration)
	}
	if len(f.subjects) == 0 {
		return exitPass, errors.New("--subjects: found none; expected one or more, separated by commas")
	}
	f.runs.seed = seedOf(f.runs.seed)
	if _, err := f.round(cmd, names, f.runs.seed); err != nil {
		return exitPass, err // before anything is written
	}
	begun := time.Now()
	fmt.Fprintf(cmd.ErrOrStderr(), "hunting for %s from seed %d on\n", f.duration, f.runs.seed)
	bag, huntErr := hunt.Run(cmd.Context(), hunt.Options{
		Seed:     f.runs.seed,
		Duration: f.duration,
		Round:    func(seed uint64) ([]hunt.Attempt, error) { return f.round(cmd, names, seed) },
		Clock:    clock.RealClock{},
	})
	code := verdictCode(bag.Caught)
	if bag.Runs > 0 && len(bag.Caught) == 0 {
		code = exitPass
	}
	dir := filepath.Join(f.runs.out, "nightly-"+begun.UTC().Format("20060102T150405"))
	if err := errors.Join(huntErr, report(cmd, dir, bag)); err != nil {
		return code, &unfinishedError{err}
	}
	return code, nil
}

// round returns the runs of a seed: every scenario, on each subject in turn.
func (f *nightlyFlags) round(cmd *cobra.Command, names []string, seed uint64) ([]hunt.Attempt, error) {
	var bySubject [][]run.Options
	for _, subject := range f.subjects {
		flags := f.runs
		flags.subject, flags.seed = subject, seed
		scenarios, err := loadScenarios(names) // each run writes its seed into its own
		if err != nil {
			return nil, err
		}
		all, err := flags.options(cmd, scenarios)
		if err != nil {
			return nil, err
		}
		bySubject = append(bySubject, all)
	}
	var round []hunt.Attempt
	for i := range bySubject[0] {
		for _, all := range bySubject {
			round = append(round, attempt(all[i]))
		}
	}
	return round, nil
}

func attempt(o run.Options) hunt.Attempt {
	return func(ctx context.Context) (*reports.Run, error) {
		o.Progress(fmt.Sprintf("seed %d, subject %s", o.Scenario.Seed, o.Target))
		judged, err := run.Run(ctx, o)
		if judged != nil {
			o.Progress(string(judged.Verdict))
		}
		return judged, err
	}
}

// report prints what was caught, and leaves it in a directory.
func report(cmd *cobra.Command, dir string, bag hunt.Bag) error {
	var lines bytes.Buffer
	if err := reports.Caught(&lines, bag.Runs, bag.Caught); err != nil {
		return err
	}
	fmt.Fprint(cmd.OutOrStdout(), lines.String())
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("keeping what was caught: %w", err)
	}
	all := []error{os.WriteFile(filepath.Join(dir, "caught.md"), lines.Bytes(), 0o644)}
	if len(bag.Caught) > 0 {
		all = append(all, reports.WriteFiles(dir, bag.Caught...))
	}
	fmt.Fprintf(cmd.OutOrStdout(), "\nsee %s\n", strings.TrimSuffix(dir, "/"))
	return errors.Join(all...)
}
