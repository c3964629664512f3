package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
	"github.com/kube-gauntlet/gauntlet/harness/internal/campaign"
	"github.com/kube-gauntlet/gauntlet/harness/internal/outputfile"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// campaignFlags has the values of the flags of commands that make many runs: nightly and the
// subcommands of sweep.
type campaignFlags struct {
	runs     runFlags // the flags for every run, except that --subjects replaces --subject
	subjects []string
	confirm  string // the provider with real clocks that repeats runs which failed in virtual time, or noProvider
}

// noProvider is the value of the flag --confirm with which gauntlet repeats no failed run.
const noProvider = "none"

// add adds the flag --subjects to a command. It also adds the flags for running scenarios, such as
// --provider; see addShared.
func (f *campaignFlags) add(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.subjects, "subjects", []string{"ours", "upstream"}, "the controllers under test, one after the other; see --subject of \"gauntlet run\"")
	flags.StringVar(&f.confirm, "confirm", providers.Embedded, "the provider that repeats each failed run of the provider virtual, or "+noProvider)
	f.runs.addShared(flags)
}

// checkSubjects returns an error if the flag --subjects is empty, or has an unknown value or the same
// value twice. The flag lists the controllers under test.
func (f *campaignFlags) checkSubjects() error {
	if len(f.subjects) == 0 {
		return errors.New("--subjects: found no subject; name one or more, separated by commas")
	}
	for i, name := range f.subjects {
		if slices.Contains(f.subjects[:i], name) {
			return fmt.Errorf("--subjects: found %q twice; name each subject once", name)
		}
		if err := checkSubject("subjects", name); err != nil {
			return err
		}
	}
	return nil
}

// attemptsOf returns one function for each combination of scenario and subject (controllers under
// test). Each function makes one run with the given seed. With seed 0, each run uses the seed in
// its scenario.
//
// The argument load is a function that returns the scenarios. The results have the order of these
// scenarios, and each scenario has one result for each subject. A run changes the seed in its
// scenario, so attemptsOf calls load once for each subject.
func (f *campaignFlags) attemptsOf(cmd *cobra.Command, load func() ([]*scenario.Scenario, error), seed uint64) ([]campaign.Attempt, error) {
	if err := f.checkSubjects(); err != nil {
		return nil, err // report this error before load prints warnings about skipped scenarios
	}
	if err := f.checkConfirm(cmd); err != nil {
		return nil, err
	}
	if f.runs.terminal == nil {
		f.runs.terminal = f.runs.newTerminal(cmd)
	}
	var bySubject [][]run.Options
	for _, subject := range f.subjects {
		f.runs.subject = subject // for load
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
			attempts = append(attempts, f.confirmed(all[i]))
		}
	}
	return attempts, nil
}

// checkConfirm returns an error if --confirm names no provider that can repeat a run. It also
// returns an error if --confirm is set for runs in real time, where the flag has no effect.
func (f *campaignFlags) checkConfirm(cmd *cobra.Command) error {
	if f.runs.provider != providers.Virtual {
		if cmd.Flags().Changed("confirm") {
			return fmt.Errorf("--confirm has no effect on the provider %s; remove the flag, or use --provider=%s", f.runs.provider, providers.Virtual)
		}
		return nil
	}
	if f.confirm == noProvider || f.confirm == providers.Embedded {
		return nil
	}
	return fmt.Errorf("--confirm=%s: expected %s or %s", f.confirm, providers.Embedded, noProvider)
}

// confirmed returns a function that makes one run. If the run is in virtual time and fails, the
// function repeats it on the provider of --confirm. It does not repeat the run if --confirm is
// none, or if the workload has long pauses (see repeatedPausesMax).
func (f *campaignFlags) confirmed(o run.Options) campaign.Attempt {
	once := discardInterrupted(attempt(o))
	if o.Provider != providers.Virtual || f.confirm == noProvider {
		return once
	}
	return confirmFailure(once, f.confirm, func(seed uint64) campaign.Attempt {
		if pauses := o.Scenario.Pauses(); pauses > repeatedPausesMax {
			return func(context.Context) (*reports.Run, error) {
				return nil, fmt.Errorf("the pauses of the workload take %s; run gauntlet shrink to shorten them", pauses)
			}
		}
		o.Progress("repeating the failed run on the provider " + f.confirm)
		again := o
		again.Provider, again.Scenario = f.confirm, o.Scenario.Clone()
		again.Scenario.Seed = seed
		return discardInterrupted(attempt(again))
	})
}

// repeatedPausesMax is the maximum sum of a workload's pauses with which gauntlet repeats a
// failed run in real time. Real time does not skip the pauses, as virtual time does.
const repeatedPausesMax = 10 * time.Minute

// confirmFailure returns a function that makes a run by calling makeRun. If the run fails, the
// function calls repeat to make the run again with the same seed, on the named provider.
//
// The returned function returns the result of the first run. The field Repeated of this result
// says what the second run showed.
func confirmFailure(makeRun campaign.Attempt, provider string, repeat func(seed uint64) campaign.Attempt) campaign.Attempt {
	return func(ctx context.Context) (*reports.Run, error) {
		result, err := makeRun(ctx)
		if result == nil || result.Verdict != check.Fail || ctx.Err() != nil {
			return result, err
		}
		second, secondErr := repeat(result.Seed)(ctx)
		if ctx.Err() != nil && secondErr != nil {
			second = nil // the second run was interrupted, so its verdict says nothing
		}
		result.Repeated = describeSecondRun(provider, second, secondErr)
		return result, err
	}
}

// describeSecondRun returns a text about the second run of a failed scenario, on another
// provider: its verdict and its directory. If gauntlet did not repeat the run, the text says why.
func describeSecondRun(provider string, second *reports.Run, err error) string {
	if second == nil {
		return fmt.Sprintf("not repeated on the provider %s: %v", provider, err)
	}
	return fmt.Sprintf("on the provider %s, the same scenario and seed have the verdict %s (%s)", provider, second.Verdict, second.Directory)
}

// attemptsOfSeed returns one function for each subject (controllers under test). Each function runs
// the scenario that the seed generates.
func (f *campaignFlags) attemptsOfSeed(cmd *cobra.Command, generated generateFlags, seed uint64) ([]campaign.Attempt, error) {
	return f.attemptsOf(cmd, func() ([]*scenario.Scenario, error) {
		s, err := generated.generate(seed, f.runs.provider)
		return []*scenario.Scenario{s}, err
	}, seed)
}

// attempt returns a function that makes one run with the given options. The function prints the
// seed and the program under test when the run starts. It prints the verdict when the run ends.
func attempt(o run.Options) campaign.Attempt {
	return func(ctx context.Context) (*reports.Run, error) {
		o.Progress(fmt.Sprintf("seed %d, subject %s", o.Scenario.Seed, o.Target))
		result, err := run.Run(ctx, o)
		if result != nil {
			o.Progress(string(result.Verdict))
		}
		return result, err
	}
}

// discardInterrupted returns a function that makes a run by calling makeRun. If ctx ends during
// the run and no check has failed, the returned function removes the run directory. The verdict
// of an interrupted run says nothing.
func discardInterrupted(makeRun campaign.Attempt) campaign.Attempt {
	return func(ctx context.Context) (*reports.Run, error) {
		result, err := makeRun(ctx)
		if err == nil || ctx.Err() == nil {
			return result, err
		}
		dir := ""
		var unrecorded *run.UnrecordedError
		switch {
		case result != nil && result.Verdict != check.Fail:
			dir = result.Directory
		case result == nil && errors.As(err, &unrecorded):
			dir = unrecorded.Directory
		}
		if dir != "" {
			err = errors.Join(err, os.RemoveAll(dir))
		}
		return result, err
	}
}

// retryUnknown returns a function that makes a run by calling makeRun. The function calls makeRun
// again as long as the verdict is unknown. The argument times is the maximum number of runs.
//
// Repeating can help, because the timing of a run decides whether a trigger matches or a fault
// finds an object. A failed run is not repeated.
func retryUnknown(makeRun campaign.Attempt, times int, progress func(string)) campaign.Attempt {
	return func(ctx context.Context) (result *reports.Run, err error) {
		for n := 1; ; n++ {
			result, err = makeRun(ctx)
			if result == nil || result.Verdict != check.Unknown || n >= times || ctx.Err() != nil {
				return result, err
			}
			if err != nil {
				progress(err.Error())
			}
			progress(fmt.Sprintf("the verdict is unknown: %s (%s); starting attempt %d of %d", result.Reason, result.Directory, n+1, times))
		}
	}
}

// seriesOf returns an iterator over the functions in a list, in the form that package campaign
// expects. Each function makes one run. The iterator yields each function with a nil error.
func seriesOf(all []campaign.Attempt) iter.Seq2[campaign.Attempt, error] {
	return func(yield func(campaign.Attempt, error) bool) {
		for _, attempt := range all {
			if !yield(attempt, nil) {
				return
			}
		}
	}
}

// seriesOfRounds returns an iterator over the runs of several rounds. The arguments first and
// last are the numbers of the first and the last round. A round is, for example, a seed with one
// run for each subject (controllers under test).
//
// The argument runsOfRound returns the runs of a round. The iterator calls it for a round only
// when it reaches that round. If runsOfRound returns an error, the iterator yields the error and
// ends.
func seriesOfRounds(first, last uint64, runsOfRound func(n uint64) ([]campaign.Attempt, error)) iter.Seq2[campaign.Attempt, error] {
	return func(yield func(campaign.Attempt, error) bool) {
		for n := first; n <= last; n++ {
			attempts, err := runsOfRound(n)
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

// runCampaign runs a campaign, which is a series of runs, and returns the exit code for the
// verdicts. It writes the reports to a new directory. The directory's name consists of the argument
// name and the start time.
func (f *campaignFlags) runCampaign(cmd *cobra.Command, name string, o campaign.Options) (int, error) {
	begun := time.Now()
	o.Clock = clock.RealClock{}
	parallel, err := f.runs.parallelRuns()
	if err != nil {
		return exitPass, err
	}
	o.Parallel = parallel
	results, campaignErr := campaign.Run(cmd.Context(), o)
	if results.Interrupted != "" {
		campaignErr = errors.Join(errors.New(results.Interrupted), campaignErr)
	}
	code := verdictCode(results.Failed)
	if results.Runs > 0 && len(results.Failed) == 0 {
		code = exitPass
	}
	dir := newDirectory(f.runs.out, name, begun)
	if err := errors.Join(campaignErr, reportCampaign(cmd, dir, results)); err != nil {
		return code, &unfinishedError{err}
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%.1f runs per minute\n", float64(results.Runs)/time.Since(begun).Minutes())
	return code, nil
}

// failuresName is the name of the file with the failure groups in the directory of a campaign.
const failuresName = "failures.md"

// reportCampaign prints the failures of a campaign in groups of equal failures. It writes the
// groups and the reports of all runs to dir.
func reportCampaign(cmd *cobra.Command, dir string, results campaign.Results) error {
	var lines, file bytes.Buffer
	if results.Interrupted != "" {
		fmt.Fprintf(io.MultiWriter(&lines, &file), "%s\n\n", results.Interrupted)
	}
	if err := errors.Join(reports.FailureGroups(&lines, results.Runs, results.Failed), reports.FailureGroupsMarkdown(&file, results.Runs, results.Failed)); err != nil {
		return err
	}
	written := writeCampaign(dir, file.Bytes(), results) // before printing, which may block or fail
	fmt.Fprint(cmd.OutOrStdout(), lines.String())
	annotated := writeAnnotations(func() error { return reports.Annotations(cmd.OutOrStdout(), results.Failed) })
	if results.Runs > 0 && isDirectory(dir) {
		fmt.Fprintf(cmd.OutOrStdout(), "\nreport: %s\n", filepath.Join(dir, reports.PageName))
	}
	return errors.Join(annotated, written)
}

// writeCampaign writes the failure groups and the reports of a campaign to dir. The argument groups
// has the failure groups as text.
func writeCampaign(dir string, groups []byte, results campaign.Results) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("%s: cannot create the directory of the campaign: %w", dir, inputfile.Reason(err))
	}
	err := outputfile.Replace(filepath.Join(dir, failuresName), groups)
	runs := slices.Concat(results.Failed, results.Passed)
	switch {
	case results.Runs == 0:
		return err
	case results.Interrupted != "":
		return errors.Join(err, reports.WriteInterrupted(dir, results.Interrupted, runs...))
	default:
		return errors.Join(err, reports.WriteFiles(dir, runs...))
	}
}
