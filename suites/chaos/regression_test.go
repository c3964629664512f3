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

// regressions is where the scenarios are, from here, that show a weakness of
// upstream's and that ours does not have it.
var regressions = filepath.Join("..", "regression")

var _ = ginkgo.Describe("regression", func() {
	for _, w := range check.KnownIssues {
		path := filepath.Join(regressions, w.Name+".yaml")
		for _, provider := range strings.Split(*providers, ",") {
			ginkgo.It(fmt.Sprintf("%s has its known weakness %d in %s on %s", subject.Upstream, w.Trap, w.Name, provider),
				ofRegression(provider, subject.Upstream, w), func(ctx ginkgo.SpecContext) {
					judged := ends(ctx, provider, subject.Upstream, load(path), check.KnownUpstream)
					for _, result := range judged.Results {
						if result.Verdict == check.KnownUpstream {
							gomega.Expect(result.Check).To(gomega.Equal(w.Check))
							gomega.Expect(result.Evidence[0].KnownIssue).To(gomega.Equal(w.Trap))
						}
					}
				})
			ginkgo.It(fmt.Sprintf("%s is without upstream's weakness %d in %s on %s", subject.Ours, w.Trap, w.Name, provider),
				ofRegression(provider, subject.Ours, w), func(ctx ginkgo.SpecContext) {
					passes(ctx, provider, subject.Ours, load(path))
				})
		}
	}

	ginkgo.It("has no scenario that is none of a weakness", ginkgo.Label("fast"), func() {
		found, err := filepath.Glob(filepath.Join(regressions, "*.yaml"))
		gomega.Expect(err).NotTo(gomega.HaveOccurred())
		var want []string
		for _, w := range check.KnownIssues {
			want = append(want, filepath.Join(regressions, w.Name+".yaml"))
		}
		gomega.Expect(found).To(gomega.ConsistOf(want))
	})
})

// ofRegression labels a regression's spec.
func ofRegression(provider string, target subject.Target, w *check.KnownIssue) ginkgo.Labels {
	speed := "fast"
	if provider != "embedded" || w.Slow {
		speed = "slower"
	}
	return ginkgo.Labels{target.String(), provider, "regression", speed}
}

func load(path string) *scenario.Scenario {
	ginkgo.GinkgoHelper()
	asked, err := scenario.Load(path)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	return asked
}
