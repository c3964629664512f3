// Package chaos runs the scenarios of package harness/scenario/library. The subjects, which are
// the programs under test, are our controllers and kube-controller-manager.
//
// Our controllers must pass all scenarios. kube-controller-manager may also show a known upstream
// issue. Any other failure of kube-controller-manager means that a check is wrong.
//
//	go test ./suites/chaos -ginkgo.label-filter='upstream && pod-churn'
//	go test ./suites/chaos -provider=kind -reports=out/e2e
//	go test ./suites/chaos -provider=existing -kubeconfig=/path/to/kubeconfig
//
// A spec, which is a Ginkgo test, runs one scenario on one subject. It has these labels: subject,
// provider, scenario, fault types, the smallest tier that contains the scenario, and the speed. The
// speed is fast, slow or slower.
package chaos

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/faults/catalog"
	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/scenario/library"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
	"github.com/kube-gauntlet/gauntlet/reports"
)

var (
	providerNames    = flag.String("provider", providers.Default(), "the providers of control planes, separated by commas")
	nodeImage        = flag.String("node-image", "", "the image of a kind node; empty means the default of the provider")
	kubeconfig       = flag.String("kubeconfig", "", "the absolute path of the kubeconfig of an existing cluster; empty means the default of kubectl")
	controllerSwitch = flag.String("controller-switch", "", "a program that turns off the existing cluster's own instances of the controllers under test; gauntlet calls it with off before a run and with on after the run")
	reportsDir       = flag.String("reports", "", "the directory for the combined reports of all runs, relative to the root of the repository; empty means no reports")
)

// root is the root directory of the repository.
var root = filepath.Join("..", "..")

func TestChaos(t *testing.T) {
	gomega.RegisterFailHandler(ginkgo.Fail)
	ginkgo.RunSpecs(t, "chaos")
}

var _ = ginkgo.Describe("chaos", func() {
	for _, provider := range strings.Split(*providerNames, ",") {
		for _, target := range []subject.Target{subject.Ours, subject.Upstream} {
			for _, s := range library.All() {
				ginkgo.It(fmt.Sprintf("%s passes scenario %s on %s", target, s.Name, provider),
					labels(provider, target, s),
					func(ctx ginkgo.SpecContext) { expectPass(ctx, provider, target, s) })
			}
		}
	}
})

// labels returns the Ginkgo labels of the spec that runs a scenario on a program under test. The
// package comment lists them.
func labels(provider string, target subject.Target, s *scenario.Scenario) ginkgo.Labels {
	all := ginkgo.Labels{target.String(), provider, s.Name, string(library.TierOf(s.Name))}
	for _, fault := range s.Faults {
		all = append(all, fault.Name)
	}
	switch {
	case lightweight(provider):
		return append(all, "fast")
	case s.Cluster.Nodes <= 2 && !slices.ContainsFunc(s.Faults, slowOnKubelets):
		return append(all, "slow") // each run starts a kind cluster
	default:
		return append(all, "slower")
	}
}

// lightweight reports whether a run on a provider takes only seconds. This is true if the provider
// simulates the kubelets. For an unknown provider, lightweight returns false, and the Ginkgo specs
// fail.
func lightweight(provider string) bool {
	p, err := providers.Named(provider)
	return err == nil && p.Capabilities.Has(cluster.SimulatedKubelets)
}

// slowOnKubelets reports whether a run with a fault takes long on real kubelets. Such a fault
// restarts parts of the cluster or waits for a trigger.
func slowOnKubelets(fault scenario.Fault) bool {
	kind, _ := catalog.Find(fault.Name) // a test of the scenario library checks that every fault exists
	return kind.Outage || fault.When != nil || strings.HasPrefix(fault.Name, "node-")
}

// expectPass runs a scenario and expects the verdict pass. For upstream, it also accepts the
// verdict known-upstream, because timing decides whether a known upstream issue occurs. The
// scenarios in suites/regression show each of these issues reliably.
func expectPass(ctx ginkgo.SpecContext, provider string, target subject.Target, s *scenario.Scenario) {
	if target == subject.Upstream {
		expectVerdict(ctx, provider, target, s, check.Pass, check.KnownUpstream)
		return
	}
	expectVerdict(ctx, provider, target, s, check.Pass)
}

// expectVerdict runs a scenario and fails the Ginkgo spec unless the verdict is one of want. After
// such a failure, it keeps the run directory.
func expectVerdict(ctx ginkgo.SpecContext, provider string, target subject.Target, s *scenario.Scenario, want ...check.Verdict) *reports.Run {
	s.Seed = uint64(ginkgo.GinkgoRandomSeed())
	options := run.Options{
		Scenario:  s,
		Target:    target,
		Provider:  provider,
		NodeImage: *nodeImage,
		Existing:  cluster.Existing{Kubeconfig: *kubeconfig, ControllerSwitch: *controllerSwitch},
		Out:       filepath.Join(root, "out"),
		Ours:      filepath.Join(root, "bin", "workload-controller-manager"),
		Gauntlet:  filepath.Join(root, "bin", "gauntlet"),
		Progress:  func(message string) { ginkgo.GinkgoWriter.Println(message) },
		Clock:     clock.RealClock{},
		Revision:  "test",
	}
	if err := run.Supported(s, provider); err != nil {
		if lightweight(provider) { // the test of unused permissions reads these entries, but only of lightweight providers
			ginkgo.AddReportEntry(unsupportedEntry, ginkgo.ReportEntryVisibilityNever, err.Error())
		}
		ginkgo.Skip(err.Error())
	}
	result, err := run.Run(ctx, options)
	if errors.Is(err, cluster.ErrNoCapacity) {
		ginkgo.Skip(err.Error())
	}
	if result != nil {
		ginkgo.AddReportEntry(runEntry, ginkgo.ReportEntryVisibilityNever, *result)
	}
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	gomega.Expect(reports.Terminal(ginkgo.GinkgoWriter, []reports.Run{*result}, 0)).To(gomega.Succeed())
	gomega.Expect(result.Verdict).To(gomega.BeElementOf(want), result.Reason)
	if target == subject.Ours {
		expectPermissionsGranted(result.Directory)
	}
	gomega.Expect(os.RemoveAll(result.Directory)).To(gomega.Succeed())
	return result
}
