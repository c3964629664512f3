package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/campaign"
	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// huntFlags are those of the commands that make many runs and keep what did not
// pass.
type huntFlags struct {
	runs     runFlags
	subjects []string
}

func (f *huntFlags) add(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.subjects, "subjects", []string{"ours", "upstream"}, "what is under test, in turn: see --subject of gauntlet run")
	f.runs.shared(flags)
}

// attempts are the runs of some scenarios with a seed, on each subject in turn; 0
// is the scenario's own. Every run needs a scenario of its own, to write its seed
// into.
func (f *huntFlags) attempts(cmd *cobra.Command, load func() ([]*scenario.Scenario, error), seed uint64) ([]campaign.Attempt, error) {
	if len(f.subjects) == 0 {
		return nil, errors.New("--subjects: found none; expected one or more, separated by commas")
	}
	if f.runs.terminal == nil {
		f.runs.terminal = newTerminal(cmd.ErrOrStderr())
	}
	var bySubject [][]run.Options
	for _, subject := range f.subjects {
		scenarios, err := load()
		if err != nil {
			return nil, err
		}
		flags := f.runs
		flags.subject, flags.seed, flags.label = subject, seed, " "+subject
		all, err := flags.options(cmd, scenarios)
		if err != nil {
			return nil, err
		}
		bySubject = append(bySubject, all)
	}
	var attempts []campaign.Attempt
	for i := range bySubject[0] {
		for _, all := range bySubject {
			attempts = append(attempts, attempt(all[i]))
		}
	}
	return attempts, nil
}

// seed are the runs of what one seed generates.
func (f *huntFlags) seed(cmd *cobra.Command, generated generatedFlags, seed uint64) ([]campaign.Attempt, error) {
	return f.attempts(cmd, func() ([]*scenario.Scenario, error) {
		s, err := generated.scenario(seed, f.runs.provider)
		return []*scenario.Scenario{s}, err
	}, seed)
}

// attempt makes a run and tells of its beginning and its verdict.
func attempt(o run.Options) campaign.Attempt {
	return func(ctx context.Context) (*reports.Run, error) {
		o.Progress(fmt.Sprintf("seed %d, subject %s", o.Scenario.Seed, o.Target))
		judged, err := run.Run(ctx, o)
		if judged != nil {
			o.Progress(string(judged.Verdict))
		}
		return judged, err
	}
}

// untilKnown makes a run up to so many times, for as long as its verdict is unknown:
// whether a moment comes, or a fault finds something to act on, is partly chance. A
// failure stands, whatever another run would show.
func untilKnown(once campaign.Attempt, times int, progress func(string)) campaign.Attempt {
	return func(ctx context.Context) (judged *reports.Run, err error) {
		for n := 1; ; n++ {
			judged, err = once(ctx)
			if judged == nil || judged.Verdict != check.Unknown || n >= times || ctx.Err() != nil {
				return judged, err
			}
			if err != nil {
				progress(err.Error())
			}
			progress(fmt.Sprintf("once more, attempt %d of %d: %s (%s)", n+1, times, judged.Reason, judged.Directory))
		}
	}
}

// series is that of some runs.
func series(all []campaign.Attempt) iter.Seq2[campaign.Attempt, error] {
	return func(yield func(campaign.Attempt, error) bool) {
		for _, attempt := range all {
			if !yield(attempt, nil) {
				return
			}
		}
	}
}

// rounds is the series of the rounds from first to last.
func rounds(first, last uint64, round func(n uint64) ([]campaign.Attempt, error)) iter.Seq2[campaign.Attempt, error] {
	return func(yield func(campaign.Attempt, error) bool) {
		for n := first; n <= last; n++ {
			attempts, err := round(n)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, attempt := range attempts {
				if !yield(attempt, nil) {
					return
				}
			}
		}
	}
}

// hunt makes the runs, reports what was caught in a directory called after what is
// done, and returns what the verdicts amount to.
func (f *huntFlags) hunt(cmd *cobra.Command, name string, o campaign.Options) (int, error) {
	begun := time.Now()
	o.Clock = clock.RealClock{}
	parallel, err := f.runs.abreast()
	if err != nil {
		return exitPass, err
	}
	o.Parallel = parallel
	bag, huntErr := campaign.Run(cmd.Context(), o)
	code := verdictCode(bag.Failed)
	if bag.Runs > 0 && len(bag.Failed) == 0 {
		code = exitPass
	}
	dir := filepath.Join(f.runs.out, name+"-"+begun.UTC().Format("20060102T150405"))
	if err := errors.Join(huntErr, report(cmd, dir, bag, time.Since(begun))); err != nil {
		return code, &unfinishedError{err}
	}
	return code, nil
}

// report prints what was caught, and leaves it in a directory.
func report(cmd *cobra.Command, dir string, bag campaign.Results, took time.Duration) error {
	var lines bytes.Buffer
	if err := reports.FailureGroups(&lines, bag.Runs, bag.Failed); err != nil {
		return err
	}
	fmt.Fprint(cmd.OutOrStdout(), lines.String())
	annotated := annotate(func() error { return reports.Annotations(cmd.OutOrStdout(), bag.Failed) })
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("keeping what was caught: %w", err)
	}
	all := []error{annotated, os.WriteFile(filepath.Join(dir, "caught.md"), lines.Bytes(), 0o644)}
	if bag.Runs > 0 {
		all = append(all, reports.WriteFiles(dir, slices.Concat(bag.Failed, bag.Passed)...))
	}
	fmt.Fprintf(cmd.OutOrStdout(), "\n%.1f runs a minute, see %s\n", float64(bag.Runs)/took.Minutes(), filepath.Join(dir, reports.PageName))
	return errors.Join(all...)
}
