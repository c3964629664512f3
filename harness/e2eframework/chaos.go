package e2eframework

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/envfuncs"
	"sigs.k8s.io/e2e-framework/pkg/types"
	"sigs.k8s.io/e2e-framework/support"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/environment"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// Chaos records each feature of a suite, and runs the checks at its end:
//
//	testenv.BeforeEachFeature(chaos.Begin)
//	testenv.AfterEachFeature(chaos.End)
//
// Begin starts the program under test behind the fault proxy. If the test binary runs the
// controllers itself, a step starts them with the client configuration of [ProxyConfig]. Steps
// inject faults with [Inject]. The features must not run in
// parallel, because they share the control plane.
type Chaos struct {
	// Cluster is the name of a cluster that a provider of this package has created.
	Cluster string
	// Controllers lists the controllers under test. The general checks apply to them.
	Controllers []scenario.ExternalController
	// Kinds lists the kinds of objects that no table of gauntlet has, such as custom resources. The
	// history contains their objects.
	Kinds []scenario.ExternalKind
	// Subject is the program under test, of subject.Command. The zero value means that the test
	// binary runs the controllers.
	Subject subject.Target
	// Replicas is the number of replicas of Subject; 0 means 1.
	Replicas int
	// Namespace is the namespace that is recorded. Empty means that of the framework's
	// configuration, and if that is empty, environment.Namespace.
	Namespace string
	// Out is the parent directory of the run directories, which contain the histories and the
	// reports. Empty means out/e2e-framework.
	Out string
	// Settle is the time in which the objects must converge after the last step, and the time
	// without writes after that. Zero values mean the defaults of scenarios.
	Settle scenario.Settle
	// Seed is the seed of the faults' random choices.
	Seed uint64
}

// feature is the recording of a feature. The context contains it between Begin and End.
type feature struct {
	session *run.Session
	heals   []func(context.Context) error // heal the faults that are active, in the order of injection
	faults  int                           // number of injected faults
}

type featureKey struct{}

// featureOf returns the recording of the current feature.
func featureOf(ctx context.Context) (*feature, error) {
	f, ok := ctx.Value(featureKey{}).(*feature)
	if !ok {
		return nil, errors.New("found no recording of a feature; expected testenv.BeforeEachFeature(chaos.Begin)")
	}
	return f, nil
}

// Begin starts the history and the fault proxy of a feature. It is a types.FeatureEnvFunc.
func (c *Chaos) Begin(ctx context.Context, cfg *envconf.Config, _ *testing.T, of types.Feature) (context.Context, error) {
	e, err := Environment(ctx, c.Cluster)
	if err != nil {
		return ctx, err
	}
	session, err := run.Start(ctx, run.Options{
		Scenario:  c.scenario(of.Name()),
		Target:    c.target(),
		On:        e,
		Namespace: firstOf(c.Namespace, cfg.Namespace()),
		Out:       firstOf(c.Out, "out/e2e-framework"),
	})
	if err != nil {
		return ctx, fmt.Errorf("recording feature %q: %w", of.Name(), err)
	}
	if err := session.Begin(ctx); err != nil {
		_, err := session.End(ctx, err)
		return ctx, err
	}
	return context.WithValue(ctx, featureKey{}, &feature{session: session}), nil
}

// target returns the subject.
func (c *Chaos) target() subject.Target {
	if c.Subject == (subject.Target{}) {
		return subject.Program
	}
	return c.Subject
}

func firstOf(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

// notInNames matches characters that the name of a scenario must not contain.
var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// nameMax is the maximum length of the name of a scenario.
const nameMax = 63

// scenario returns the scenario of a feature, whose workload is the steps of the feature.
func (c *Chaos) scenario(feature string) *scenario.Scenario {
	name := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(feature), "-"), "-")
	name = strings.Trim(name[:min(len(name), nameMax)], "-")
	s := scenario.New(firstOf(name, "feature"), "feature "+feature)
	s.Seed = c.Seed
	s.Subject.Replicas = max(c.Replicas, 1)
	s.ExternalWorkload.Controllers, s.ExternalWorkload.Kinds = c.Controllers, c.Kinds
	if c.Settle.Within > 0 {
		s.Settle.Within = c.Settle.Within
	}
	if c.Settle.Quiet > 0 {
		s.Settle.Quiet = c.Settle.Quiet
	}
	return s
}

// End heals all faults, waits until the objects have converged, runs the checks, and writes the
// reports. A violation fails the test with its evidence. The verdict unknown only logs its reason.
// The controllers must still run. End is a types.FeatureEnvFunc.
func (c *Chaos) End(ctx context.Context, _ *envconf.Config, t *testing.T, _ types.Feature) (context.Context, error) {
	f, err := featureOf(ctx)
	if err != nil {
		return ctx, err
	}
	result, err := f.end(ctx)
	if err != nil {
		return ctx, err
	}
	report(t, result)
	return context.WithValue(ctx, featureKey{}, nil), nil
}

// end ends the recording and returns the verdicts.
func (f *feature) end(ctx context.Context) (*reports.Run, error) {
	err := f.heal(ctx)
	if err == nil {
		err = f.session.Settle(ctx)
	}
	return f.session.End(ctx, err)
}

// report fails the test for each violated check, and logs the verdict. If the test has failed, for
// this reason or because of an assertion, report also logs what the faults did.
func report(t *testing.T, result *reports.Run) {
	t.Logf("verdict of the checks: %s; report: %s/report.html", result.Verdict, result.Directory)
	for _, r := range result.Results {
		switch r.Verdict {
		case check.Fail:
			t.Errorf("check %s: %s", r.Check, r.Reason)
		case check.Unknown:
			t.Logf("check %s: unknown: %s", r.Check, r.Reason)
		}
	}
	if !t.Failed() {
		return
	}
	lines, err := firings(result.Directory)
	if err != nil {
		t.Errorf("reading what the faults did: %v", err)
	}
	for _, line := range lines {
		t.Log(line)
	}
}

// ProxyConfig returns a client configuration with all permissions that connects through the fault
// proxy. The history shows its requests under the name of the client. Use one name for each process
// or manager, and a new name after a restart.
func ProxyConfig(ctx context.Context, client string) (*rest.Config, error) {
	f, err := featureOf(ctx)
	if err != nil {
		return nil, err
	}
	return f.session.Environment.ProxyConfig(client)
}

// Inject returns a step function that injects a fault. The fault is active until [Heal], or until
// the end of the feature. Params are the parameters of the fault, as a scenario has them, in YAML:
//
//	Inject("api-error", "{verb: create, resource: pods, code: 500, every: 3}")
func Inject(fault, params string) types.StepFunc {
	return func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
		t.Helper()
		f, err := featureOf(ctx)
		if err == nil {
			err = f.inject(ctx, fault, params)
		}
		if err != nil {
			t.Fatal(err)
		}
		return ctx
	}
}

func (f *feature) inject(ctx context.Context, fault, params string) error {
	heal, err := f.session.Environment.Inject(ctx, environment.Injection{Fault: fault, Params: params, Index: f.faults})
	if err != nil {
		return err
	}
	f.faults++
	f.heals = append(f.heals, heal)
	return nil
}

// Heal returns a step function that heals all active faults.
func Heal() types.StepFunc {
	return func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
		t.Helper()
		f, err := featureOf(ctx)
		if err == nil {
			err = f.heal(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
		return ctx
	}
}

// heal heals all active faults, the last one first.
func (f *feature) heal(ctx context.Context) error {
	var errs []error
	for len(f.heals) > 0 {
		last := len(f.heals) - 1
		errs = append(errs, f.heals[last](ctx))
		f.heals = f.heals[:last]
	}
	return errors.Join(errs...)
}

// Converged returns a step function that waits until all objects have converged. Faults may be
// active. It fails the test if the objects have not converged within [Chaos].Settle.
func Converged() types.StepFunc {
	return func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
		t.Helper()
		f, err := featureOf(ctx)
		if err == nil {
			err = f.session.Converged(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
		return ctx
	}
}

// Environment returns the environment of a cluster that a provider of this package has created. Use
// it for parts of the API that this package does not wrap, such as a fault proxy of the suite's own.
func Environment(ctx context.Context, name string) (*environment.Environment, error) {
	p, ok := envfuncs.GetClusterFromContext(ctx, name)
	if !ok {
		return nil, fmt.Errorf("found no cluster %q in the context; expected testenv.Setup(envfuncs.CreateCluster(provider, %q))", name, name)
	}
	return environmentOfProvider(p, name)
}

func environmentOfProvider(p support.E2EClusterProvider, name string) (*environment.Environment, error) {
	of, ok := p.(interface{ base() *provider })
	if !ok {
		return nil, fmt.Errorf("cluster %q: found provider %T; expected one of package e2eframework", name, p)
	}
	if err := of.base().created(); err != nil {
		return nil, err
	}
	return of.base().environment, nil
}
