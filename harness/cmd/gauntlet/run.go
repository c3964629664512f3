package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/campaign"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/existing"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/scenario/library"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// runFlags are the flags of `gauntlet run`.
type runFlags struct {
	subject     string
	provider    string
	seed        uint64
	out         string
	keep        bool
	upstreamDir string
	nodeImage   string
	existing    existing.Options
	parallel    int
	attempts    int
	generated   generatedFlags

	// terminal is where all the runs of a command tell what they do; nil makes one.
	terminal *terminal
	// label tells the runs of one scenario apart there, if it is not enough for them.
	label string
}

func newRun(code *int) *cobra.Command {
	var flags runFlags
	cmd := &cobra.Command{
		Use:   "run [SCENARIO…]",
		Short: "Run scenarios and judge them",
		Long: `Run scenarios, each on a control plane of its own, and judge them.

SCENARIO is the name of a scenario that gauntlet brings along (see gauntlet list)
or a YAML file, such as the scenario.yaml of an earlier run; none means all that
gauntlet brings along, or, with --seed, --profile or --duration, one that is
generated from the seed.`,
		RunE: func(cmd *cobra.Command, names []string) error {
			if err := flags.checkAttempts(); err != nil {
				return err
			}
			parallel, err := flags.abreast()
			if err != nil {
				return err
			}
			scenarios, err := flags.scenarios(cmd, names)
			if err != nil {
				return err
			}
			options, err := flags.options(cmd, scenarios)
			if err != nil {
				return err
			}
			*code, err = runAll(cmd, options, parallel, flags.attempts)
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&flags.subject, "subject", "ours", "what is under test: ours, upstream, exec:PATH, a binary that takes kube-controller-manager's flags, or on kind image:REF, a container image of one")
	f.Uint64Var(&flags.seed, "seed", 0, "where random draws start; 0 takes the scenario's own seed, or else a random one")
	flags.generated.profile(f)
	flags.generated.duration(f)
	f.BoolVar(&flags.keep, "keep", false, "leave the control plane of one scenario up after its run, until Ctrl-C, and print its kubeconfig; the verdict comes then")
	flags.attemptsFlag(f)
	flags.shared(f)
	return cmd
}

func (f *runFlags) attemptsFlag(flags *pflag.FlagSet) {
	flags.IntVar(&f.attempts, "attempts", 1, "how often a scenario is run, with the same seed, before an unknown verdict on it stands; one that failed is not run again")
}

func (f *runFlags) checkAttempts() error {
	if f.attempts < 1 {
		return fmt.Errorf("--attempts=%d: expected at least 1", f.attempts)
	}
	return nil
}

// shared adds the flags that every command has which makes runs.
func (f *runFlags) shared(flags *pflag.FlagSet) {
	providerFlag(flags, &f.provider)
	flags.StringVar(&f.out, "out", "out", "the `directory` that run directories are made in")
	flags.IntVar(&f.parallel, "parallel", 0, "how many runs there are at the same time; 0 is what cores and memory allow, or 1 on kind and on an existing cluster, which takes no more")
	upstreamDirFlag(flags, &f.upstreamDir)
	nodeImageFlag(flags, &f.nodeImage)
	existingFlags(flags, &f.existing)
	flags.StringVar(&f.existing.ControllerSwitch, "displace", "", "of an existing cluster that runs the four controllers itself, a `program` that turns them off and on: it is called with \"off\" and with \"on\"")
}

// The flags that say what control plane, which several commands have.

func providerFlag(f *pflag.FlagSet, provider *string) {
	f.StringVar(provider, "provider", "embedded", "the kind of control plane: "+strings.Join(run.Providers(), ", "))
}

func upstreamDirFlag(f *pflag.FlagSet, dir *string) {
	f.StringVar(dir, "upstream-dir", "", "the `directory` of the binaries of etcd, Kubernetes and KWOK (default: the cache that `make upstream` fills)")
}

func nodeImageFlag(f *pflag.FlagSet, image *string) {
	f.StringVar(image, "node-image", "", "the `image` of a kind node (default: the one that `make node-image` builds, or else kind's released one)")
}

// absolute is a path from the root, or nothing for nothing.
func absolute(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	return filepath.Abs(path)
}

func existingFlags(f *pflag.FlagSet, o *existing.Options) {
	f.StringVar(&o.Kubeconfig, "kubeconfig", "", "the kubeconfig `file` of an existing cluster (default: what kubectl takes)")
	f.StringVar(&o.Context, "context", "", "the context of that kubeconfig (default: its current one)")
}

// options turns the command line into what to run, and refuses what cannot be
// run before anything is started.
func (f *runFlags) options(cmd *cobra.Command, scenarios []*scenario.Scenario) ([]run.Options, error) {
	target, err := subject.ParseTarget(f.subject)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(run.Providers(), f.provider) {
		return nil, fmt.Errorf("provider %q: expected %s", f.provider, strings.Join(run.Providers(), " or "))
	}
	gauntlet, ours, err := executables()
	if err != nil {
		return nil, err
	}
	if f.keep && len(scenarios) != 1 {
		return nil, fmt.Errorf("--keep: expected one scenario, found %d", len(scenarios))
	}
	if f.existing.Kubeconfig, err = absolute(f.existing.Kubeconfig); err != nil {
		return nil, err
	}
	f.existing.CleanupCommand = []string{gauntlet, "clean", "--provider=existing", "--kubeconfig=" + f.existing.Kubeconfig, "--context=" + f.existing.Context}
	versions, err := run.Versions(f.provider, f.upstreamDir, f.existing)
	if err != nil {
		return nil, &unfinishedError{err}
	}
	terminal := f.terminal
	if terminal == nil {
		terminal = newTerminal(cmd.ErrOrStderr())
	}
	var all []run.Options
	for _, s := range scenarios {
		if err := run.Validate(s); err != nil {
			return nil, err
		}
		s.Seed = seedOf(f.seed, s.Seed)
		o := run.Options{
			Scenario:    s,
			Target:      target,
			Provider:    f.provider,
			Out:         f.out,
			Ours:        ours,
			Gauntlet:    gauntlet,
			UpstreamDir: f.upstreamDir,
			NodeImage:   f.nodeImage,
			Existing:    f.existing,
			Progress:    func(message string) { terminal.progress(s.Name+f.label, message) },
			Clock:       clock.RealClock{},
			Revision:    revision,
			Versions:    versions,
		}
		if f.keep {
			o.KeepUp = terminal.hold
		}
		if err := o.Preflight(); err != nil {
			return nil, &unfinishedError{err}
		}
		all = append(all, o)
	}
	return all, nil
}

// executables are gauntlet's own and, beside it, that of our controllers.
func executables() (gauntlet, ours string, err error) {
	gauntlet, err = os.Executable()
	if err != nil {
		return "", "", fmt.Errorf("looking for our controllers beside gauntlet: %w", err)
	}
	return gauntlet, filepath.Join(filepath.Dir(gauntlet), "workload-controller-manager"), nil
}

// scenarios are what the command line asks to be run: those that are named, or
// one that is generated, or all that gauntlet brings along.
func (f *runFlags) scenarios(cmd *cobra.Command, names []string) ([]*scenario.Scenario, error) {
	shaped := slices.ContainsFunc([]string{"profile", "duration", "lean"}, cmd.Flags().Changed)
	switch {
	case len(names) > 0 && shaped:
		return nil, fmt.Errorf("--profile, --duration, --lean and %s: expected them without scenarios, for one that is generated", names[0])
	case len(names) == 0 && (shaped || cmd.Flags().Changed("seed")):
		s, err := f.generated.scenario(seedOf(f.seed), f.provider)
		return []*scenario.Scenario{s}, err
	case len(names) == 0 && slices.Contains(run.Providers(), f.provider):
		return f.supported(cmd), nil
	}
	return loadScenarios(names)
}

// supported are those of gauntlet's own scenarios that can run on the provider; it
// says which cannot, and why.
func (f *runFlags) supported(cmd *cobra.Command) []*scenario.Scenario {
	return slices.DeleteFunc(library.All(), func(s *scenario.Scenario) bool {
		err := run.Supported(s, f.provider)
		if err != nil {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s is skipped: %v\n", s.Name, err)
		}
		return err != nil
	})
}

// loadScenarios reads the scenarios that names stand for.
func loadScenarios(names []string) ([]*scenario.Scenario, error) {
	if len(names) == 0 {
		return library.All(), nil
	}
	var all []*scenario.Scenario
	for _, name := range names {
		s, err := loadScenario(name)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

func loadScenario(name string) (*scenario.Scenario, error) {
	if s, ok := library.Find(name); ok {
		return s, nil
	}
	s, err := scenario.Load(name)
	if errors.Is(err, os.ErrNotExist) {
		var known []string
		for _, s := range library.All() {
			known = append(known, s.Name)
		}
		return nil, fmt.Errorf("scenario %q: expected a YAML file or one of %s", name, strings.Join(known, ", "))
	}
	return s, err
}

// seedOf is the first seed that is set, or a new one.
func seedOf(seeds ...uint64) uint64 {
	for _, seed := range seeds {
		if seed != 0 {
			return seed
		}
	}
	return 1 + rand.Uint64N(1<<32) // short enough to be typed
}

// abreast is how many runs there are at the same time.
func (f *runFlags) abreast() (int, error) {
	switch {
	case f.parallel < 0 || f.parallel > parallelMax:
		return 0, fmt.Errorf("--parallel=%d: expected 1 to %d, or 0 for what there is room for", f.parallel, parallelMax)
	case f.parallel > 0:
		return f.parallel, nil
	case f.provider != "embedded":
		return 1, nil
	}
	return min(campaign.DefaultParallel(), parallelMax), nil
}

// parallelMax is more control planes than a machine has ports and patience for.
const parallelMax = 64

// errSeriesOver keeps further runs from being begun: what kept one from being
// raised keeps the others too.
var errSeriesOver = errors.New("a run could not begin")

// runAll carries out the runs, up to parallel at a time and each so many times at
// most before it is left unknown, and prints what they came to. Of several, one that the
// cluster has no room for is skipped. An interruption ends the series; any other broken
// run does not.
func runAll(cmd *cobra.Command, all []run.Options, parallel, times int) (int, error) {
	judged, broken := make([]*reports.Run, len(all)), make([]error, len(all))
	left := len(all) // to be run
	var attempts []campaign.Attempt
	for _, o := range all {
		attempts = append(attempts, untilKnown(attempt(o), times, o.Progress))
	}
	_ = campaign.RunParallel(cmd.Context(), parallel, series(attempts), func(place int, run *reports.Run, err error) error {
		left--
		judged[place] = run
		name := all[place].Scenario.Name
		switch {
		case errors.Is(err, existing.ErrNoRoom) && len(all) > 1: // which others may have
			fmt.Fprintf(cmd.ErrOrStderr(), "%s is skipped: %v\n", name, err)
			return nil
		case err != nil:
			broken[place] = fmt.Errorf("%s: %w", name, err)
		}
		if run == nil {
			return errSeriesOver
		}
		return nil
	}) // whose only error is in broken
	if left > 0 {
		broken = append(broken, fmt.Errorf("%d scenarios were not run", left))
	}
	var summaries []reports.Run
	for _, run := range judged {
		if run != nil {
			summaries = append(summaries, *run)
		}
	}
	if err := errors.Join(append(broken, show(cmd, summaries))...); err != nil {
		return verdictCode(summaries), &unfinishedError{err}
	}
	return verdictCode(summaries), nil
}
