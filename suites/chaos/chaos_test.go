// Package chaos runs the scenarios that gauntlet brings along against our
// controllers and against upstream's. Both must pass all of them, but for what
// upstream is known to do wrong: any other failure of upstream is a false alarm.
//
//	go test ./suites/chaos -ginkgo.label-filter='upstream && pod-churn'
//	go test ./suites/chaos -provider=kind -reports=out/e2e
//	go test ./suites/chaos -provider=existing -kubeconfig=/path/to/kubeconfig
//
// Every spec is labelled with its subject, its provider, its scenario, the kinds of
// its faults and how fast it is.
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

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/faults/catalog"
	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/existing"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/scenario/library"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
	"github.com/kube-gauntlet/gauntlet/reports"
)

var (
	providers        = flag.String("provider", "embedded", "the kinds of control plane to run on, separated by commas")
	nodeImage        = flag.String("node-image", "", "the image of a kind node; empty is the provider's choice")
	kubeconfig       = flag.String("kubeconfig", "", "the absolute path of the kubeconfig of an existing cluster; empty is what kubectl takes")
	controllerSwitch = flag.String("controller-switch", "", "a program that turns off the four controllers of an existing cluster; it is called with off and on")
	reportsDir       = flag.String("reports", "", "the directory, from the top of the project, for the reports of all runs together; empty is none")
)

// root is the top of the project, as the specs see it.
var root = filepath.Join("..", "..")

func TestChaos(t *testing.T) {
	gomega.RegisterFailHandler(ginkgo.Fail)
	ginkgo.RunSpecs(t, "chaos")
}

var _ = ginkgo.Describe("chaos", func() {
	for _, provider := range strings.Split(*providers, ",") {
		for _, target := range []subject.Target{subject.Ours, subject.Upstream} {
			for _, asked := range library.All() {
				ginkgo.It(fmt.Sprintf("%s keeps its promises through %s on %s", target, asked.Name, provider),
					labels(provider, target, asked),
					func(ctx ginkgo.SpecContext) { expectPass(ctx, provider, target, asked) })
			}
		}
	}
})

func labels(provider string, target subject.Target, asked *scenario.Scenario) ginkgo.Labels {
	all := ginkgo.Labels{target.String(), provider, asked.Name}
	for _, fault := range asked.Faults {
		all = append(all, fault.Name)
	}
	switch {
	case provider == faults.Simulated:
		return append(all, "fast")
	case asked.Cluster.Nodes <= 2 && !slices.ContainsFunc(asked.Faults, slowOnKubelets):
		return append(all, "slow") // a cluster of containers for each
	default:
		return append(all, "slower")
	}
}

// slowOnKubelets reports whether a fault takes its time on real kubelets: parts of the
// cluster have to come back, or it waits for a moment, which they bring about in
// their own time.
func slowOnKubelets(fault scenario.Fault) bool {
	kind, _ := catalog.Find(fault.Name) // all that the library has are there: its own test
	return kind.Outage || fault.When != nil || strings.HasPrefix(fault.Name, "node-")
}

// expectPass runs a scenario and expects it to pass. Upstream may be excused: which of its
// known weaknesses a scenario meets is a matter of moments, and its own scenarios, in
// suites/regression, show each for certain.
func expectPass(ctx ginkgo.SpecContext, provider string, target subject.Target, asked *scenario.Scenario) {
	if target == subject.Upstream {
		expectVerdict(ctx, provider, target, asked, check.Pass, check.KnownUpstream)
		return
	}
	expectVerdict(ctx, provider, target, asked, check.Pass)
}

// expectVerdict runs a scenario and expects one of some verdicts. The run directory of one that ends in
// another way stays in out/.
func expectVerdict(ctx ginkgo.SpecContext, provider string, target subject.Target, asked *scenario.Scenario, want ...check.Verdict) *reports.Run {
	asked.Seed = uint64(ginkgo.GinkgoRandomSeed())
	options := run.Options{
		Scenario:  asked,
		Target:    target,
		Provider:  provider,
		NodeImage: *nodeImage,
		Existing:  existing.Options{Kubeconfig: *kubeconfig, ControllerSwitch: *controllerSwitch},
		Out:       filepath.Join(root, "out"),
		Ours:      filepath.Join(root, "bin", "workload-controller-manager"),
		Gauntlet:  filepath.Join(root, "bin", "gauntlet"),
		Progress:  func(message string) { ginkgo.GinkgoWriter.Println(message) },
		Clock:     clock.RealClock{},
		Revision:  "test",
	}
	var err error
	options.Versions, err = run.Versions(provider, "", options.Existing)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	if err := run.Supported(asked, provider); err != nil {
		if provider == faults.Simulated { // where whatever makes use of a right can run
			ginkgo.AddReportEntry(unsupportedEntry, ginkgo.ReportEntryVisibilityNever, err.Error())
		}
		ginkgo.Skip(err.Error())
	}
	judged, err := run.Run(ctx, options)
	if errors.Is(err, existing.ErrNoRoom) {
		ginkgo.Skip(err.Error())
	}
	if judged != nil {
		ginkgo.AddReportEntry(runEntry, ginkgo.ReportEntryVisibilityNever, *judged)
	}
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	gomega.Expect(reports.Terminal(ginkgo.GinkgoWriter, []reports.Run{*judged}, false)).To(gomega.Succeed())
	gomega.Expect(judged.Verdict).To(gomega.BeElementOf(want), judged.Reason)
	if target == subject.Ours {
		expectPermissionsGranted(judged.Directory)
	}
	gomega.Expect(os.RemoveAll(judged.Directory)).To(gomega.Succeed())
	return judged
}
