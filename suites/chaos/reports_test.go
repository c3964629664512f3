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

// runEntry is the name of the Ginkgo report entry that contains the result of a run.
const runEntry = "run"

// unsupportedEntry is the name of the Ginkgo report entry that says why the provider cannot run
// a scenario.
const unsupportedEntry = "unsupported"

// After the suite, this Ginkgo node writes the reports of all runs to the directory that the flag
// -reports names.
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

// entries returns the values of a spec's report entries with the given name. If the spec ran in
// another Ginkgo process, a value is JSON, which entries decodes.
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
