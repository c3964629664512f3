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
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/environment"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
	"github.com/kube-gauntlet/gauntlet/harness/internal/campaign"
	"github.com/kube-gauntlet/gauntlet/harness/internal/executable"
	"github.com/kube-gauntlet/gauntlet/harness/internal/operator"
	"github.com/kube-gauntlet/gauntlet/harness/internal/setup"
	"github.com/kube-gauntlet/gauntlet/harness/nearest"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/scenario/library"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// runFlags has the values of the flags of "gauntlet run". Other commands that run scenarios use
// some of these flags.
type runFlags struct {
	subject     string
	provider    string
	seed        uint64
	out         string
	keepUp      bool // keep the control plane up after the run
	upstreamDir string
	auditDir    string // the directory of the API servers' audit logs; empty: no audit logs
	nodeImage   string
	existing    cluster.Existing // the cluster that the provider existing uses
	parallel    int              // the maximum number of runs at the same time; 0: as many as cores, memory and load allow
	attempts    int              // the maximum number of runs of a scenario
	tier        tierFlag         // the built-in scenarios that run if the user names none
	generated   generateFlags    // the flags for a scenario that a seed generates

	quiet, verbose bool // whether to print no progress, or detailed progress

	// stdin is the input from which the scenario with the name "-" is read. It is nil if the
	// command cannot read a scenario from standard input.
	stdin io.Reader
	// stdinRead is true after stdin has been read. A second read finds nothing.
	stdinRead bool
	// terminal prints progress lines. If terminal is nil, the method options creates one.
	terminal *terminal
	// operators has the loaded subject files, by their paths as in --subject. A subject file
	// describes the program under test in YAML.
	operators map[string]*operator.Operator
	// label follows the scenario's name in progress lines. If several runs have the same scenario,
	// label distinguishes the lines of these runs.
	label string
}

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

// addAttempts adds the flag --attempts to a command. The flag limits how often gauntlet repeats a
// run whose verdict is unknown.
func (f *runFlags) addAttempts(flags *pflag.FlagSet) {
	flags.IntVar(&f.attempts, "attempts", 1, "the maximum number of runs of a scenario; the scenario runs again with the same seed while its verdict is unknown; a failed run is not repeated")
}

// checkAttempts returns an error if the value of --attempts is less than 1.
func (f *runFlags) checkAttempts() error {
	if f.attempts < 1 {
		return fmt.Errorf("--attempts=%d: expected at least 1", f.attempts)
	}
	return nil
}

// addShared adds to a command the flags for running scenarios, such as --provider and --parallel.
// Several commands share these flags.
func (f *runFlags) addShared(flags *pflag.FlagSet) {
	providerFlag(flags, &f.provider)
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "print no progress, only results, warnings and errors")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "print also each step of the workload, and each fault and process that begins or ends")
	flags.StringVar(&f.out, "out", "out", "the `directory` in which run directories are created")
	flags.IntVar(&f.parallel, "parallel", 0, "the maximum number of runs at the same time; 0 means as many as cores, memory and load allow, but 1 on kind; an existing cluster allows only 1")
	upstreamDirFlag(flags, &f.upstreamDir)
	flags.StringVar(&f.auditDir, "audit-dir", "", "the `directory` in which the API server of each run writes all requests with their bodies and answers, as an audit log (default: no audit logs)")
	nodeImageFlag(flags, &f.nodeImage)
	existingFlags(flags, &f.existing)
	flags.StringVar(&f.existing.ControllerSwitch, "controller-switch", "", "a `program` that turns off the existing cluster's own instances of the controllers under test; gauntlet calls it with \"off\" before the run and with \"on\" after the run")
}

// The following functions add flags that several commands have. The flags select the control
// plane.

// providerFlag adds to a command the flag --provider, which names the provider of the control
// plane.
func providerFlag(f *pflag.FlagSet, provider *string) {
	choiceFlag(f, provider, "provider", providers.Default(), providers.Names(), "the provider of the control plane: "+strings.Join(providers.Names(), ", "))
}

// upstreamDirFlag adds to a command the flag --upstream-dir, which names the directory with the
// programs of the control plane.
func upstreamDirFlag(f *pflag.FlagSet, dir *string) {
	f.StringVar(dir, "upstream-dir", "", "the `directory` with the binaries of etcd, Kubernetes and KWOK (default: the cache that \"gauntlet setup\" fills)")
}

// nodeImageFlag adds to a command the flag --node-image, which names the image of kind nodes.
func nodeImageFlag(f *pflag.FlagSet, image *string) {
	f.Var(&imageValue{image}, "node-image", "the `image` of a kind node (default: the image that \"make node-image\" built, otherwise the image of the kind release)")
}

// absolutePath returns the absolute form of a path. It returns "" for an empty path, which means
// that a flag is not set.
func absolutePath(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	return filepath.Abs(path)
}

// checkKubeconfig returns an error if the value of the flag --kubeconfig is not the path of a
// kubeconfig. An empty path means that the flag is not set.
func checkKubeconfig(path string) error {
	if path == "" {
		return nil
	}
	content, err := inputfile.ReadText(path)
	if err != nil {
		return fmt.Errorf("--kubeconfig: %w", inputfile.WithExpected(err, "a kubeconfig"))
	}
	config, err := clientcmd.Load(content)
	mistaken := inputfile.Mistaken(content, "a kubeconfig")
	switch {
	case mistaken != nil && (err != nil || len(config.Clusters) == 0):
		return fmt.Errorf("--kubeconfig: %s: %w", path, mistaken)
	case err != nil:
		place, reason := inputfile.Locate(path, content, err, nil)
		return fmt.Errorf("--kubeconfig: %s: expected a kubeconfig: %s", place, reason)
	case len(config.Clusters) == 0:
		return fmt.Errorf("--kubeconfig: %s: found no clusters; expected a kubeconfig", path)
	}
	return nil
}

// existingFlags adds to a command the flags --kubeconfig and --context, which select an existing
// cluster.
func existingFlags(f *pflag.FlagSet, o *cluster.Existing) {
	f.StringVar(&o.Kubeconfig, "kubeconfig", "", "the kubeconfig `file` of an existing cluster (default: the file that kubectl uses)")
	f.StringVar(&o.Context, "context", "", "the context in the kubeconfig file (default: its current context)")
}

// check returns the program under test and the provider that the flags select. It also validates
// the scenarios and sets their seeds. check reads no subject file, and starts nothing. If
// --subject names a subject file, the returned program is the zero value.
func (f *runFlags) check(scenarios []*scenario.Scenario) (subject.Target, providers.Provider, error) {
	var target subject.Target
	if !isSubjectFile(f.subject) { // loadSubject later reads the subject file and builds its program
		var err error
		if target, err = subject.ParseTarget(f.subject); err != nil {
			return target, providers.Provider{}, fmt.Errorf("--subject: %w", err)
		}
	}
	provider, err := providers.Named(f.provider)
	if err != nil {
		return target, provider, err
	}
	if f.quiet && f.verbose {
		return target, provider, errors.New("--quiet and --verbose: use at most one of these flags")
	}
	if f.keepUp && len(scenarios) != 1 {
		return target, provider, fmt.Errorf("--keep: the command line selects %d scenarios; expected exactly one", len(scenarios))
	}
	// Other programs may create CustomResourceDefinitions themselves.
	undefined := provider.Capabilities.Has(cluster.OwnsControlPlane) && (target == subject.Ours || target == subject.Upstream)
	for _, s := range scenarios {
		if err := run.Validate(s); err != nil {
			return target, provider, err
		}
		if err := s.CheckDefined(); undefined && err != nil {
			return target, provider, err
		}
		s.Seed = seedOf(f.seed, s.Seed)
	}
	return target, provider, nil
}

// checkProvider returns an error if the provider cannot run the program under test. The same holds
// for a flag that has no effect on the provider. It also checks the values of --parallel, --out,
// --audit-dir, --kubeconfig and --context.
func (f *runFlags) checkProvider(cmd *cobra.Command, target subject.Target, provider providers.Provider) error {
	if err := provider.CheckFlags(cmd.Flags().Changed); err != nil {
		return err
	}
	if isSubjectFile(f.subject) {
		if err := provider.Capabilities.Require("--subject="+f.subject, subjectFileCapabilities...); err != nil {
			return fmt.Errorf("%w%s", err, providers.Alternatives(err))
		}
	} else if err := environment.CheckTarget(provider, target); err != nil {
		return err
	}
	err := errors.Join(f.checkParallel(), checkDirectory("out", f.out), checkDirectory("audit-dir", f.auditDir))
	if err != nil || provider.Capabilities.Has(cluster.OwnsControlPlane) {
		return err
	}
	if f.parallel > 1 {
		return fmt.Errorf("--parallel=%d: an existing cluster allows only 1", f.parallel)
	}
	if err := errors.Join(checkControllerSwitch(f.existing.ControllerSwitch), checkKubeconfig(f.existing.Kubeconfig)); err != nil {
		return err
	}
	_, _, err = f.existing.Load()
	return err
}

// checkControllerSwitch returns an error if the value of --controller-switch is no program that can
// run. Otherwise, a wrong value would be found only if a controller is active. An empty value means
// that the flag is not set.
func checkControllerSwitch(program string) error {
	if program == "" {
		return nil
	}
	path, err := exec.LookPath(program)
	if err != nil {
		return fmt.Errorf("--controller-switch=%s: %w; expected the path or name of a program", program, lookReason(err))
	}
	if err := executable.Check(path); err != nil {
		return fmt.Errorf("--controller-switch=%s: %w", program, err)
	}
	return nil
}

// lookReason returns the cause of an error of exec.LookPath, without the name of the program.
func lookReason(err error) error {
	var lookup *exec.Error
	if errors.As(err, &lookup) {
		return inputfile.Reason(lookup.Err)
	}
	return inputfile.Reason(err)
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

// standardInput is the scenario name with which "gauntlet run" and "gauntlet validate" read a
// scenario from standard input.
const standardInput = "-"

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

// parallelRuns returns the maximum number of runs at the same time. It returns an error if
// --parallel is out of range.
func (f *runFlags) parallelRuns() (*campaign.Limit, error) {
	if err := f.checkParallel(); err != nil || f.parallel > 0 {
		return campaign.Fixed(f.parallel), err
	}
	provider, err := providers.Named(f.provider)
	switch {
	case err != nil || !provider.Capabilities.Has(cluster.ParallelRuns):
		return campaign.Fixed(1), err
	case provider.Capabilities.Has(cluster.VirtualTime): // runs in virtual time do not stall
		return campaign.Fixed(min(campaign.DefaultParallel(), parallelMax)), nil
	}
	return campaign.DefaultLimit(parallelMax), nil
}

// checkParallel returns an error if --parallel is out of range.
func (f *runFlags) checkParallel() error {
	if f.parallel < 0 || f.parallel > parallelMax {
		return fmt.Errorf("--parallel=%d: expected 1 to %d, or 0 for as many as cores, memory and load allow", f.parallel, parallelMax)
	}
	return nil
}

// parallelMax is the maximum value of --parallel. Each run needs ports of its own, and a machine
// has a limited number of ports.
const parallelMax = 64

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
