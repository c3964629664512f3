// Package chaos runs the scenarios that gauntlet brings along against our
// controllers and against upstream's, on the embedded control plane. Both must
// pass all of them: a failure of upstream is a false alarm.
//
//	ginkgo --label-filter=upstream ./suites/chaos
package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/embedded"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/scenario/library"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
	"github.com/kube-gauntlet/gauntlet/reports"
)

func TestChaos(t *testing.T) {
	gomega.RegisterFailHandler(ginkgo.Fail)
	ginkgo.RunSpecs(t, "chaos")
}

var _ = ginkgo.Describe("chaos", func() {
	for _, target := range []subject.Target{subject.Ours, subject.Upstream} {
		for _, asked := range library.All() {
			ginkgo.It(fmt.Sprintf("%s keeps its promises through %s", target, asked.Name),
				ginkgo.Label(target.String(), "embedded"),
				func(ctx ginkgo.SpecContext) { passes(ctx, target, asked) })
		}
	}
})

// passes runs a scenario and expects it to pass. The run directory of one that
// does not stays in out/.
func passes(ctx ginkgo.SpecContext, target subject.Target, asked *scenario.Scenario) {
	root := filepath.Join("..", "..")
	asked.Seed = uint64(ginkgo.GinkgoRandomSeed())
	judged, err := run.Run(ctx, run.Options{
		Scenario: asked,
		Target:   target,
		Provider: "embedded",
		Out:      filepath.Join(root, "out"),
		Ours:     filepath.Join(root, "bin", "workload-controller-manager"),
		Progress: func(message string) { ginkgo.GinkgoWriter.Println(message) },
		Clock:    clock.RealClock{},
		Revision: "test",
		Versions: embedded.Versions(""),
	})
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	gomega.Expect(reports.Terminal(ginkgo.GinkgoWriter, []reports.Run{*judged}, false)).To(gomega.Succeed())
	gomega.Expect(judged.Verdict).To(gomega.Equal(check.Pass), judged.Reason)
	if target == subject.Ours {
		withinRights(judged.Directory)
	}
	gomega.Expect(os.RemoveAll(judged.Directory)).To(gomega.Succeed())
}
