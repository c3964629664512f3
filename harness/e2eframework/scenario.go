package e2eframework

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"

	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/types"
	"sigs.k8s.io/e2e-framework/support"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// RunScenario returns a step function that runs the scenario in o on the named cluster. If the
// verdict is fail or unknown, the test fails with the evidence of the checks.
//
// The cluster needs the option [WithScenario], and the feature needs the label [Recording] = off.
// RunScenario ignores o.On, because the scenario runs on the named cluster. An empty o.Out means
// out/e2e-framework. A nil o.Progress means the log of the test.
func RunScenario(clusterName string, o run.Options) types.StepFunc {
	return func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
		t.Helper()
		o := o // copy o, because each execution of the step has its own t
		if o.Progress == nil {
			o.Progress = func(message string) { t.Log(message) }
		}
		result, err := runScenario(ctx, clusterName, o)
		if result != nil {
			report(t, result, violations(result))
			if result.Verdict == check.Unknown {
				t.Errorf("scenario %s: verdict unknown: %s", result.Scenario, result.Reason)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		return ctx
	}
}

// runScenario runs o.Scenario on the named cluster. It returns an error if the cluster does not
// have the nodes and controllers that the scenario requires.
func runScenario(ctx context.Context, clusterName string, o run.Options) (*reports.Run, error) {
	p, err := createdProvider(ctx, clusterName)
	if err != nil {
		return nil, err
	}
	if o.Scenario != nil { // run.Run returns an error for a nil scenario
		if err := checkCluster(o.Scenario, p.environment.ControlPlane, p.environment.Capabilities()); err != nil {
			return nil, fmt.Errorf("running scenario %s on cluster %s: %w; create the cluster with the option WithScenario", o.Scenario.Name, clusterName, err)
		}
		if err := p.reserve("scenario " + o.Scenario.Name); err != nil {
			return nil, err
		}
		defer p.reserved.Store(nil)
	}
	o.On, o.Out = p.environment, cmp.Or(o.Out, defaultOut)
	return run.Run(ctx, o)
}

// WithScenario configures the cluster as a scenario requires. It sets the number of nodes, the
// start and stop delays of simulated pods, and the controllers that the cluster does not run.
func WithScenario(s *scenario.Scenario) support.ClusterOpts {
	return WithControlPlane(func(o *providers.Options) { forScenario(s, o) })
}

// forScenario sets the options of a control plane that depend on the scenario, such as the number
// of nodes.
func forScenario(s *scenario.Scenario, o *providers.Options) {
	o.Nodes, o.Pods, o.Relays = s.Cluster.Nodes, s.PodsMax(), s.Subject.Replicas
	o.PodStartDelay, o.PodStopDelay = s.Cluster.PodStartDelay, s.Cluster.PodStopDelay
	o.Controllers = []kube.Controller{}
	for _, c := range s.Controllers() {
		if slices.Contains(kube.ControllerNames(), c.Name) { // other controllers are not part of Kubernetes, so the cluster cannot run them
			o.Controllers = append(o.Controllers, c)
		}
	}
}

// checkCluster returns an error if a scenario cannot run on a cluster. The argument found has the
// cluster's options. The error contains the option that differs, such as the number of nodes.
func checkCluster(s *scenario.Scenario, found providers.Options, capabilities cluster.Capabilities) error {
	var want providers.Options
	forScenario(s, &want)
	if found, want := controllerNames(found.Controllers), controllerNames(want.Controllers); !slices.Equal(found, want) {
		return fmt.Errorf("controllers that the cluster does not run: found %q; expected the controllers under test, %q", found, want)
	}
	if want.Pods == 0 {
		return nil // without pods, the number of nodes does not matter
	}
	if owns := capabilities.Has(cluster.OwnsControlPlane); owns && found.Nodes < want.Nodes {
		return fmt.Errorf("the cluster has %d nodes; expected at least %d", found.Nodes, want.Nodes)
	}
	if simulated := capabilities.Has(cluster.SimulatedKubelets); simulated && (found.PodStartDelay != want.PodStartDelay || found.PodStopDelay != want.PodStopDelay) {
		return fmt.Errorf("the cluster has the pod start delay %s and the pod stop delay %s; expected %s and %s", found.PodStartDelay, found.PodStopDelay, want.PodStartDelay, want.PodStopDelay)
	}
	return nil
}

// controllerNames returns the names of the controllers in alphabetical order, so that two lists can
// be compared. Nil means the default controllers.
func controllerNames(controllers []kube.Controller) []string {
	if controllers == nil {
		return slices.Sorted(slices.Values(kube.DefaultControllers()))
	}
	names := []string{}
	for _, c := range controllers {
		names = append(names, c.Name)
	}
	slices.Sort(names)
	return names
}
