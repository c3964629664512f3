package specs

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"

	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/suites/conformance/rows"
	"github.com/kube-gauntlet/gauntlet/suites/conformance/table"
)

// After the suite, this Ginkgo node writes the table of results to the terminal. It also writes
// the results to files in the directory that the flag -reports names.
var _ = ginkgo.ReportAfterSuite("table", func(report ginkgo.Report) {
	if report.SuiteConfig.DryRun {
		return
	}
	run := resultsOf(report)
	gomega.Expect(table.Terminal(os.Stdout, run)).To(gomega.Succeed())
	if options.reportsDir == "" {
		return
	}
	dir := options.reportsDir
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(options.Root, dir)
	}
	gomega.Expect(os.MkdirAll(dir, 0o755)).To(gomega.Succeed())
	for name, write := range map[string]func(io.Writer, table.Run) error{"conformance.json": table.JSON, "TABLE.md": table.Markdown} {
		file, err := os.Create(filepath.Join(dir, name))
		gomega.Expect(err).NotTo(gomega.HaveOccurred())
		gomega.Expect(write(file, run)).To(gomega.Succeed())
		gomega.Expect(file.Close()).To(gomega.Succeed())
	}
})

// resultsOf returns the results of the specs in a Ginkgo report, in the order of the source
// code.
func resultsOf(report types.Report) table.Run {
	run := table.Run{
		Kubernetes: providers.UpstreamVersions("")["kubernetes"], Provider: options.Provider, Profile: options.profile, Subjects: Subjects(),
	}
	specs := report.SpecReports.WithLeafNodeType(types.NodeTypeIt)
	slices.SortStableFunc(specs, func(a, b types.SpecReport) int {
		return strings.Compare(a.LeafNodeLocation.String()+a.LeafNodeText, b.LeafNodeLocation.String()+b.LeafNodeText)
	})
	for _, spec := range specs {
		for _, row := range rows.All() {
			if !slices.Contains(spec.Labels(), Label(RowPrefix+row.ID())) {
				continue
			}
			for _, subject := range run.Subjects {
				if slices.Contains(spec.Labels(), Label(subject)) {
					run.Results = append(run.Results, table.Result{
						Row: row.ID(), Spec: spec.LeafNodeText, Subject: subject, State: stateOf(spec), Reason: spec.Failure.Message, Duration: spec.RunTime,
					})
				}
			}
		}
	}
	return run
}

func stateOf(spec types.SpecReport) table.State {
	switch {
	case spec.State == types.SpecStatePassed:
		return table.Passed
	case spec.State == types.SpecStateSkipped && spec.Failure.Message != "":
		return table.Skipped
	case spec.State.Is(types.SpecStateSkipped | types.SpecStatePending | types.SpecStateInvalid):
		return table.NotRun
	default:
		return table.Failed
	}
}
