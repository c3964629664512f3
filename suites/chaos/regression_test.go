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

// regressionDir is where the scenarios are, from here, that show a weakness of
// upstream's and that ours does not have it.
var regressionDir = filepath.Join("..", "regression")

var _ = ginkgo.Describe("regression", func() {
	for _, w := range check.KnownIssues {
		path := filepath.Join(regressionDir, w.Slug+".yaml")
		for _, provider := range strings.Split(*providers, ",") {
			ginkgo.It(fmt.Sprintf("%s shows the known issue %s on %s", subject.Upstream, w.Slug, provider),
				regressionLabels(provider, subject.Upstream, w), func(ctx ginkgo.SpecContext) {
					judged := expectVerdict(ctx, provider, subject.Upstream, loadScenario(path), check.KnownUpstream)
					for _, result := range judged.Results {
						if result.Verdict == check.KnownUpstream {
							gomega.Expect(result.Check).To(gomega.Equal(w.Check))
							gomega.Expect(result.Evidence[0].KnownIssue).To(gomega.Equal(w.Slug))
						}
					}
				})
			ginkgo.It(fmt.Sprintf("%s does not have the known issue %s on %s", subject.Ours, w.Slug, provider),
				regressionLabels(provider, subject.Ours, w), func(ctx ginkgo.SpecContext) {
					expectPass(ctx, provider, subject.Ours, loadScenario(path))
				})
		}
	}

	ginkgo.It("has no scenario that is none of a weakness", ginkgo.Label("fast"), func() {
		found, err := filepath.Glob(filepath.Join(regressionDir, "*.yaml"))
		gomega.Expect(err).NotTo(gomega.HaveOccurred())
		var want []string
		for _, w := range check.KnownIssues {
			want = append(want, filepath.Join(regressionDir, w.Slug+".yaml"))
		}
		gomega.Expect(found).To(gomega.ConsistOf(want))
	})
})

// regressionLabels labels a regression's spec.
func regressionLabels(provider string, target subject.Target, w *check.KnownIssue) ginkgo.Labels {
	speed := "fast"
	if provider != "embedded" || w.Slow {
		speed = "slower"
	}
	return ginkgo.Labels{target.String(), provider, "regression", speed}
}

func loadScenario(path string) *scenario.Scenario {
	ginkgo.GinkgoHelper()
	asked, err := scenario.Load(path)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	return asked
}
