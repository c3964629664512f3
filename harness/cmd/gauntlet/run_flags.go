package main

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/environment"
	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
	"github.com/kube-gauntlet/gauntlet/harness/internal/campaign"
	"github.com/kube-gauntlet/gauntlet/harness/internal/executable"
	"github.com/kube-gauntlet/gauntlet/harness/internal/operator"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
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
