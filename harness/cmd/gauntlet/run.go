package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/internal/campaign"
	"github.com/kube-gauntlet/gauntlet/harness/internal/setup"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/scenario/library"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
	"github.com/kube-gauntlet/gauntlet/reports"
)

func newRun(code *int) *cobra.Command {
	flags := runFlags{tier: tierFlag(library.Default)}
	var dryRun bool
	var baselineFile string
	var format outputFormat
	cmd := &cobra.Command{
		Use:   "run [SCENARIO…]",
		Short: "Run scenarios and check the results",
		Long: `Run scenarios, each on its own control plane, and check the results.

SCENARIO is the name of a built-in scenario (see "gauntlet list") or a YAML file, such
as the scenario.yaml of an earlier run, or "-" for standard input. Without SCENARIO,
the built-in scenarios of --tier run: quick is for pull requests and takes about two
minutes, default catches nearly all that the library catches, and full has all
scenarios. With --seed, --profile or --duration and without SCENARIO, one scenario is
generated from the seed and run.

With -o json, the command prints one line of JSON to standard output for each run that
ends, with the fields that a run has in verdicts.json. With -o yaml, it prints a YAML
document instead. Everything else goes to standard error.`,
		Example: `  gauntlet run
  gauntlet run watch-delay-pods --subject=upstream
  gauntlet run my-scenario.yaml --subject=exec:./my-kcm --seed=7
  gauntlet generate --seed=7 | gauntlet run -
  gauntlet run --tier=quick --dry-run
  gauntlet run --quiet -o json | jq -r 'select(.verdict == "fail") | .reproduce'`,
		ValidArgsFunction: completeScenarios,
		RunE: func(cmd *cobra.Command, names []string) error {
			if err := flags.checkAttempts(); err != nil {
				return err
			}
			parallel, err := flags.parallelRuns()
			if err != nil {
				return err
			}
			flags.stdin = &interruptibleReader{cmd.Context(), cmd.InOrStdin()}
			if baselineFile != "" && len(names) != 1 && !cmd.Flags().Changed("seed") && !flags.generated.changed(cmd) {
				return fmt.Errorf("--baseline: found %d scenarios on the command line; expected exactly one", len(names))
			}
			scenarios, err := flags.scenarios(cmd, names)
			if err != nil {
				return err
			}
			learnt, err := loadBaseline(baselineFile, scenarios)
			if err != nil {
				return err
			}
			if dryRun {
				return flags.printPlan(cmd, format, scenarios)
			}
			options, err := flags.options(cmd, scenarios)
			if err != nil {
				return err
			}
			flags.compareWith(cmd, options, learnt, baselineFile)
			*code, err = runAll(cmd, format, options, parallel, flags.attempts)
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&flags.subject, "subject", "ours", "the controllers under test: ours; upstream; exec:PATH, a binary that accepts the flags of kube-controller-manager; on kind, image:REF, a container image of such a binary; in virtual time, go:PATH, the directory of a Go package; or FILE.yaml, a subject file that describes any other controller")
	f.Uint64Var(&flags.seed, "seed", 0, "the seed of all random choices; 0 uses the seed in the scenario, or a random one if it has none")
	flags.tier.add(f)
	flags.generated.addProfile(f)
	flags.generated.addDuration(f)
	f.BoolVar(&flags.keepUp, "keep", false, "keep the control plane up after the run until Ctrl-C, and print its kubeconfig; the verdict follows; for one scenario only")
	f.StringVar(&baselineFile, "baseline", "", "the `file` of \"gauntlet baseline\" with which the run is compared; for one scenario only")
	f.BoolVar(&dryRun, "dry-run", false, "print what would run: each scenario with its subject, provider and seed; build and start nothing")
	outputFlag(cmd, &format, "the format of what is printed to standard output")
	flags.addAttempts(f)
	flags.addShared(f)
	return cmd
}

// newTerminal returns a terminal that prints progress messages to standard error. With --quiet, it
// prints nothing.
func (f *runFlags) newTerminal(cmd *cobra.Command) *terminal {
	t := newTerminal(cmd.ErrOrStderr())
	t.quiet = f.quiet
	return t
}

// announce prints a message that concerns all runs to standard error, unless --quiet is set.
func (f *runFlags) announce(cmd *cobra.Command, format string, args ...any) {
	if !f.quiet {
		fmt.Fprintf(cmd.ErrOrStderr(), format, args...)
	}
}

// options returns the options of one run for each scenario. It starts no run. It returns an error
// if a run is not possible, for example because an executable is missing.
func (f *runFlags) options(cmd *cobra.Command, scenarios []*scenario.Scenario) ([]run.Options, error) {
	target, provider, err := f.check(scenarios)
	if err != nil {
		return nil, err
	}
	if err := f.checkProvider(cmd, target, provider); err != nil {
		return nil, err
	}
	if isSubjectFile(f.subject) {
		if target, err = f.loadSubject(cmd, scenarios); err != nil {
			return nil, err
		}
		warnOfFlags(cmd.ErrOrStderr(), f.subject, scenarios)
	}
	gauntlet, ours, err := executables(cmd.Context(), target)
	if _, isPackage := target.Package(); isPackage && err != nil {
		return nil, err // wrong usage: most likely, the Go package of --subject=go:PATH does not compile
	} else if err != nil {
		return nil, &unfinishedError{err}
	}
	if f.existing.Kubeconfig, err = absolutePath(f.existing.Kubeconfig); err != nil {
		return nil, err
	}
	versions, err := provider.Versions(providers.Options{UpstreamDir: f.upstreamDir, Existing: f.existing})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, err
	} else if err != nil {
		return nil, &unfinishedError{err}
	}
	terminal := f.terminal
	if terminal == nil {
		terminal = f.newTerminal(cmd)
	}
	if err := setUpPrograms(cmd.Context(), provider, target, f.upstreamDir); err != nil {
		return nil, err
	}
	var all []run.Options
	for _, s := range scenarios {
		name := s.Name + f.label
		progress := func(message string) { terminal.progress(name, message) }
		o := run.Options{
			Scenario:    s,
			Target:      target,
			Provider:    f.provider,
			Out:         f.out,
			Ours:        ours,
			Gauntlet:    gauntlet,
			UpstreamDir: f.upstreamDir,
			AuditDir:    f.auditDir,
			NodeImage:   f.nodeImage,
			Existing:    f.existing,
			Progress:    progress,
			Clock:       clock.RealClock{},
			Revision:    revision,
			Versions:    versions,
		}
		if f.verbose {
			o.OnRecord = func(record *history.Record) {
				if text := recordText(record); text != "" {
					progress(text)
				}
			}
		}
		if f.keepUp {
			o.KeepUp = terminal.keepUpUntilInterrupt
		}
		if err := o.Preflight(); err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	return all, nil
}

// executables returns the path of gauntlet's executable. If the target is our controllers, it also
// returns the path of workload-controller-manager. An installed gauntlet builds
// workload-controller-manager if it is missing.
//
// If the target is a Go package (go:PATH), executables builds a copy of gauntlet-virtual that
// contains this package. Callers expect gauntlet-virtual in the same directory as gauntlet. The
// result gauntlet is therefore a path in the directory of the copy. No file exists at this path.
func executables(ctx context.Context, target subject.Target) (gauntlet, ours string, err error) {
	gauntlet, err = os.Executable()
	if err != nil {
		return "", "", fmt.Errorf("finding the path of the gauntlet executable: %w", err)
	}
	if target == subject.Ours {
		ours, err = setup.Own(ctx, gauntlet, setup.WorkloadControllerManager)
	}
	if dir, ok := target.Package(); ok {
		program, err := setup.Linked(ctx, filepath.Dir(filepath.Dir(gauntlet)), dir)
		return filepath.Join(filepath.Dir(program), filepath.Base(gauntlet)), "", err
	}
	return gauntlet, ours, err
}

// setUpPrograms builds the programs of the control plane that are missing in the cache. If the
// target is upstream and the provider runs it as a process, setUpPrograms also builds
// kube-controller-manager.
func setUpPrograms(ctx context.Context, provider providers.Provider, target subject.Target, upstreamDir string) error {
	if err := provider.Setup(ctx, providers.Options{UpstreamDir: upstreamDir}); err != nil {
		return buildError(upstreamDir, err)
	}
	if target != subject.Upstream || !provider.Capabilities.Has(cluster.SubjectAsProcess) {
		return nil
	}
	_, err := providers.ControllerManager(ctx, upstreamDir)
	return buildError(upstreamDir, err)
}

// buildError returns the error of a command for which the upstream programs could not be found or
// built. The argument err is the cause. If the user has set --upstream-dir, the command line is
// wrong, and buildError returns err unchanged. Otherwise a build has failed, and buildError
// returns an unfinishedError. It returns nil if err is nil.
func buildError(upstreamDir string, err error) error {
	if err == nil || upstreamDir != "" {
		return err
	}
	return &unfinishedError{err}
}

// seedOf returns the first seed that is not 0, that is, the first one that a user has set. If all
// seeds are 0, it returns a random seed.
func seedOf(seeds ...uint64) uint64 {
	for _, seed := range seeds {
		if seed != 0 {
			return seed
		}
	}
	return 1 + rand.Uint64N(1<<32) // at most 10 digits, so that users can type it
}

// checkSeeds returns an error if several runs need seeds above the maximum. The first run has the
// seed of --seed, and each further run has the next seed. The argument count is the number of runs.
func checkSeeds(first uint64, count int) error {
	if most := uint64(math.MaxUint64) - uint64(count-1); first > most {
		return fmt.Errorf("--seed=%d: expected at most %d, because each further run has the next seed", first, most)
	}
	return nil
}

// errCannotStart is the error with which runAll ends a series of runs early. A reason that prevents
// one run from starting usually prevents the other runs too.
var errCannotStart = errors.New("a run could not start")

// runAll makes all the runs, prints the verdicts and returns the exit code. The argument parallel
// is the maximum number of runs at the same time.
//
// runAll repeats a run while the verdict is unknown. The argument times is the maximum number of
// attempts. If the cluster has no room for one of several runs, runAll skips that run. After any
// other failed start, or after an interrupt, no further run starts.
//
// In the formats JSON and YAML, runAll prints each run to standard output when the run ends, and
// everything else to standard error.
func runAll(cmd *cobra.Command, format outputFormat, all []run.Options, parallel *campaign.Limit, times int) (int, error) {
	results, errs := make([]*reports.Run, len(all)), make([]error, len(all))
	left := len(all) // the number of runs that have not ended
	var attempts []campaign.Attempt
	for _, o := range all {
		attempts = append(attempts, retryUnknown(attempt(o), times, o.Progress))
	}
	_ = campaign.RunParallel(cmd.Context(), parallel, seriesOf(attempts), func(place int, run *reports.Run, err error) error {
		left--
		results[place] = run
		name := all[place].Scenario.Name
		switch {
		case errors.Is(err, cluster.ErrNoCapacity) && len(all) > 1: // other runs may still fit, because their scenarios need fewer pods or nodes
			fmt.Fprintf(cmd.ErrOrStderr(), "skipping scenario %s: %v\n", name, err)
			return nil
		case err != nil:
			errs[place] = fmt.Errorf("%s: %w", name, err)
		}
		if run == nil {
			return errCannotStart
		}
		if format != asTable {
			if err := writeDocument(cmd, format, func(w io.Writer) error { return reports.RunJSON(w, run) }); err != nil {
				errs[place] = errors.Join(errs[place], err)
				return err
			}
		}
		return nil
	}) // ignore the error of RunParallel, because errs has its cause
	if left > 0 {
		errs = append(errs, fmt.Errorf("%d of %d scenarios did not run, because a run could not start or gauntlet was interrupted", left, len(all)))
	}
	var summaries, shown []reports.Run
	for place, run := range results {
		if run == nil {
			continue
		}
		summaries = append(summaries, *run)
		if errs[place] != nil && run.Undecided() { // the verdicts would only repeat the error as their reason
			errs[place] = fmt.Errorf("%w\n(every check has the verdict unknown; the run directory is %s)", errs[place], run.Directory)
			continue
		}
		shown = append(shown, *run)
	}
	out := cmd.OutOrStdout()
	if format != asTable {
		out = cmd.ErrOrStderr()
	}
	if err := errors.Join(append(errs, printVerdictsOf(out, shown, summaries))...); err != nil {
		return verdictCode(summaries), &unfinishedError{err}
	}
	return verdictCode(summaries), nil
}
