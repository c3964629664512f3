package chaos

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"

	"github.com/kube-gauntlet/gauntlet/reports"
)

// runEntry is the name of the report entry that holds what is reported of a run.
const runEntry = "run"

// unsupportedEntry is the name of the report entry that says why a scenario cannot
// run where others do.
const unsupportedEntry = "unsupported"

// The reports of all runs together go where the flag says.
var _ = ginkgo.ReportAfterSuite("reports", func(report ginkgo.Report) {
	if *reportsDir == "" || report.SuiteConfig.DryRun {
		return
	}
	dir := filepath.Join(root, *reportsDir)
	gomega.Expect(os.MkdirAll(dir, 0o755)).To(gomega.Succeed())
	var runs []reports.Run
	for _, spec := range report.SpecReports {
		runs = append(runs, entries[reports.Run](spec, runEntry)...)
	}
	gomega.Expect(reports.WriteFiles(dir, runs...)).To(gomega.Succeed())
})

// entries returns what a spec reported under a name. What another process
// reported comes as plain JSON.
func entries[T any](spec types.SpecReport, name string) []T {
	ginkgo.GinkgoHelper()
	var all []T
	for _, entry := range spec.ReportEntries {
		if entry.Name != name {
			continue
		}
		encoded, err := json.Marshal(entry.GetRawValue())
		gomega.Expect(err).NotTo(gomega.HaveOccurred())
		var value T
		gomega.Expect(json.Unmarshal(encoded, &value)).To(gomega.Succeed())
		all = append(all, value)
	}
	return all
}
