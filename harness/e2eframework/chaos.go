package e2eframework

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/envfuncs"
	"sigs.k8s.io/e2e-framework/pkg/types"
	"sigs.k8s.io/e2e-framework/support"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

// Chaos records each feature of a suite, and runs the checks at the end of the feature:
//
//	testenv.BeforeEachFeature(chaos.Begin)
//	testenv.AfterEachFeature(chaos.End)
//
// Begin starts the program under test, with the fault proxy between the program and the API server.
// If the test binary runs the controllers itself, a step starts the controllers with the client
// configuration of [ProxyConfig]. Steps inject faults with [Inject]. Chaos does not record features
// with the label [Recording] = off.
//
// A cluster can record only one feature at a time. With NewCluster, each feature has its own
// cluster, so that features can run in parallel.
type Chaos struct {
	// Cluster is the name of a cluster that a provider of this package has created.
	Cluster string
	// NewCluster, if set, gives each feature its own cluster, so that features can run in
	// parallel. It returns a provider. Begin creates a cluster with this provider under the name
	// Cluster, and End destroys the cluster. Features that are not recorded also get a cluster.
	NewCluster func() support.E2EClusterProvider
	// Controllers lists the controllers under test. The checks that apply to any controller run on
	// their requests.
	Controllers []scenario.ExternalController
	// Kinds lists Kinds that gauntlet does not know, such as custom resources. The history contains
	// the objects of these Kinds.
	Kinds []scenario.ExternalKind
	// Subject is the program under test, for example a result of subject.Command. The zero value
	// means that the test binary runs the controllers. On a kind cluster, Subject must be the zero
	// value.
	Subject subject.Target
	// Replicas is the number of replicas of Subject; 0 means 1.
	Replicas int
	// Faults lists faults that act while the steps of each feature run. The triggers and times of a
	// fault say when the fault begins and ends. To read faults from a scenario file, use
	// scenario.Load.
	Faults []scenario.Fault
	// Namespace is the namespace that Chaos records. Empty means the namespace in the framework's
	// configuration. If that namespace is empty too, Chaos records the namespace "gauntlet", and
	// Begin writes "gauntlet" to the feature's configuration.
	Namespace string
	// Out is the parent directory of the run directories, which contain the histories and the
	// reports. Empty means out/e2e-framework.
	Out string
	// Settle contains the two time limits for the end of a feature. Within Settle.Within after
	// the last step, all objects must converge: their status must match their spec. The
	// controllers must then write nothing for Settle.Quiet. Zero values mean the defaults of
	// scenarios.
	Settle scenario.Settle
	// Seed is the random seed of the faults in Faults. For faults that steps inject, see
	// [WithSeed].
	Seed uint64
}

// Recording is the key of a feature label. If the label's value is off, [Chaos] does not record the
// feature. Features that call [RunScenario] need the label, because RunScenario itself records.
const Recording = "recording"

// defaultOut is the default of Chaos.Out, and of run.Options.Out in [RunScenario].
const defaultOut = "out/e2e-framework"

// Begin starts the recording of a feature: the history, the fault proxy and the program under test.
// Pass Begin to testenv.BeforeEachFeature.
func (c *Chaos) Begin(ctx context.Context, cfg *envconf.Config, t *testing.T, of types.Feature) (context.Context, error) {
	if previous := currentFeature(ctx); previous != nil { // a step of the previous feature called t.FailNow or t.SkipNow, so End was not called
		previous.abandon(ctx, t)
	}
	ctx = context.WithValue(ctx, featureKey{}, nil)
	f := &feature{name: of.Name(), recorded: isRecorded(of), injected: len(c.Faults)}
	if !f.recorded && c.NewCluster == nil {
		return ctx, nil
	}
	ctx, err := c.start(ctx, cfg, f)
	if err != nil {
		return ctx, fmt.Errorf("feature %q: %w", f.name, errors.Join(err, f.release(ctx)))
	}
	t.Cleanup(func() { f.abandon(context.WithoutCancel(ctx), t) })
	return context.WithValue(ctx, featureKey{}, f), nil
}

// isRecorded reports whether a feature does not have the label [Recording] = off.
func isRecorded(of types.Feature) bool { return !of.Labels().Contains(Recording, "off") }

// start prepares a feature's cluster. With NewCluster, it first creates the cluster. If the feature
// is recorded, start then reserves the cluster and begins the recording.
func (c *Chaos) start(ctx context.Context, cfg *envconf.Config, f *feature) (_ context.Context, err error) {
	if c.NewCluster != nil {
		f.own = c.NewCluster()
		cfg.WithClient(nil) // a client that cfg already has belongs to another cluster
		if ctx, err = envfuncs.CreateCluster(f.own, c.Cluster)(ctx, cfg); err != nil {
			return ctx, err
		}
	}
	if !f.recorded {
		return ctx, nil
	}
	p, err := createdProvider(ctx, c.Cluster)
	if err != nil {
		return ctx, err
	}
	if inPods := p.environment.Capabilities().Has(cluster.SubjectInPods); inPods && c.Subject != (subject.Target{}) {
		return ctx, fmt.Errorf("Chaos.Subject is %s, but provider %s cannot start this program: leave Chaos.Subject empty, and run the controllers in the test binary with ProxyConfig", c.Subject, p.name)
	}
	if err := p.reserve("feature " + f.name); err != nil {
		return ctx, err
	}
	f.reserved = p
	f.session, err = run.Start(ctx, run.Options{
		Scenario:  c.scenario(f.name),
		Target:    cmp.Or(c.Subject, subject.Program),
		On:        p.environment,
		Namespace: cmp.Or(c.Namespace, cfg.Namespace()),
		Out:       cmp.Or(c.Out, defaultOut),
	})
	if err != nil {
		return ctx, err
	}
	if cfg.Namespace() == "" {
		cfg.WithNamespace(p.environment.RecordedNamespace())
	}
	if err := f.begin(ctx); err != nil {
		_, err := f.session.End(ctx, err)
		return ctx, err
	}
	return ctx, nil
}

// notInNames matches characters that a scenario's name must not contain. A "-" replaces them
// when a feature's name becomes a scenario's name.
var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// nameMax is the maximum length of a scenario's name. Longer names of features are cut off.
const nameMax = 63

// scenario returns the scenario with which a feature is recorded. The steps of the feature are the
// workload.
func (c *Chaos) scenario(feature string) *scenario.Scenario {
	name := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(feature), "-"), "-")
	name = strings.Trim(name[:min(len(name), nameMax)], "-")
	s := scenario.New(cmp.Or(name, "feature"), "feature "+feature)
	s.Seed = c.Seed
	s.Subject.Replicas = max(c.Replicas, 1)
	s.Operator = &scenario.Operator{Kinds: c.Kinds, Controllers: c.Controllers}
	s.Faults = c.Faults
	s.Settle.Within = cmp.Or(c.Settle.Within, s.Settle.Within)
	s.Settle.Quiet = cmp.Or(c.Settle.Quiet, s.Settle.Quiet)
	return s
}

// End heals all faults, waits until the objects have converged (their status matches their
// spec), and runs the checks. It also writes the reports. Pass End to testenv.AfterEachFeature.
//
// The controllers must still run. If a check finds a violation, the test fails, with the
// evidence. The test also fails if no injected fault had an effect, or if a fault with mustFire
// had no effect. If the verdict is unknown for any other reason, End only logs the reason.
func (c *Chaos) End(ctx context.Context, _ *envconf.Config, t *testing.T, of types.Feature) (context.Context, error) {
	f := currentFeature(ctx)
	if f == nil && !isRecorded(of) {
		return ctx, nil
	}
	if f == nil {
		return ctx, errNotRecorded
	}
	result, err := f.end(ctx)
	if result != nil {
		report(t, result, append(violations(result), withoutEffect(result)...))
	}
	return context.WithValue(ctx, featureKey{}, nil), err
}
