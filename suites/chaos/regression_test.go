package chaos

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

// regressionDir is the directory that contains one scenario for each known upstream issue. In
// this scenario, kube-controller-manager shows the issue, and our controllers do not.
var regressionDir = filepath.Join("..", "regression")

var _ = ginkgo.Describe("regression", func() {
	for _, issue := range check.KnownIssues {
		path := filepath.Join(regressionDir, issue.Slug+".yaml")
		for _, provider := range strings.Split(*providerNames, ",") {
			ginkgo.It(fmt.Sprintf("%s shows the known issue %s on %s", subject.Upstream, issue.Slug, provider),
				regressionLabels(provider, subject.Upstream, issue), func(ctx ginkgo.SpecContext) {
					run := expectVerdict(ctx, provider, subject.Upstream, loadScenario(path), check.KnownUpstream)
					var checks []string // all checks that recognized the issue; there may be several
					for _, result := range run.Results {
						if result.Verdict == check.KnownUpstream {
							checks = append(checks, result.Check)
							gomega.Expect(result.Evidence[0].KnownIssue).To(gomega.Equal(issue.Slug))
						}
					}
					gomega.Expect(checks).To(gomega.ContainElement(issue.Check))
				})
			ginkgo.It(fmt.Sprintf("%s does not have the known issue %s on %s", subject.Ours, issue.Slug, provider),
				regressionLabels(provider, subject.Ours, issue), func(ctx ginkgo.SpecContext) {
					expectPass(ctx, provider, subject.Ours, loadScenario(path))
				})
		}
	}

	ginkgo.It("has exactly one scenario for each known upstream issue", ginkgo.Label("fast"), func() {
		found, err := filepath.Glob(filepath.Join(regressionDir, "*.yaml"))
		gomega.Expect(err).NotTo(gomega.HaveOccurred())
		var want []string
		for _, issue := range check.KnownIssues {
			want = append(want, filepath.Join(regressionDir, issue.Slug+".yaml"))
		}
		gomega.Expect(found).To(gomega.ConsistOf(want))
	})
})

// regressionLabels returns the Ginkgo labels of the spec that runs the scenario of a known
// upstream issue.
func regressionLabels(provider string, target subject.Target, issue *check.KnownIssue) ginkgo.Labels {
	speed := "fast"
	if !lightweight(provider) || issue.Slow {
		speed = "slower"
	}
	return ginkgo.Labels{target.String(), provider, "regression", speed}
}

func loadScenario(path string) *scenario.Scenario {
	ginkgo.GinkgoHelper()
	s, err := scenario.Load(path)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	return s
}
