package conformance

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
	if *reportsDir == "" {
		return
	}
	dir := *reportsDir
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(root, dir)
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
		Kubernetes: providers.UpstreamVersions("")["kubernetes"], Provider: *provider, Profile: *profile, Subjects: strings.Split(*subjects, ","),
	}
	specs := report.SpecReports.WithLeafNodeType(types.NodeTypeIt)
	slices.SortStableFunc(specs, func(a, b types.SpecReport) int {
		return strings.Compare(a.LeafNodeLocation.String()+a.LeafNodeText, b.LeafNodeLocation.String()+b.LeafNodeText)
	})
	for _, spec := range specs {
		for _, row := range rows.All() {
			if !slices.Contains(spec.Labels(), label(rowLabel+row.ID())) {
				continue
			}
			for _, subject := range run.Subjects {
				if slices.Contains(spec.Labels(), label(subject)) {
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

// TestTableMatchesSpecs checks that TABLE.md contains exactly one line for every Ginkgo spec.
// TABLE.md must also name the version of Kubernetes that this project uses.
func TestTableMatchesSpecs(t *testing.T) {
	saved, err := os.ReadFile("TABLE.md")
	if err != nil {
		t.Fatal(err)
	}
	if version := providers.UpstreamVersions("")["kubernetes"]; !strings.Contains(string(saved), "Kubernetes "+version+".") {
		t.Errorf("TABLE.md: expected Kubernetes %s; run make conformance-table", version)
	}
	specs := specsByRow(ginkgo.PreviewSpecs("conformance"), *subjects)
	var want []string
	for _, row := range rows.All() {
		if row.Pending != "" {
			want = append(want, table.Prefix(row)+"*pending: "+row.Pending+"*")
		}
		for _, spec := range specs[label(rowLabel+row.ID())] {
			want = append(want, table.Prefix(row)+spec)
		}
	}
	var got []string
	_, lines, _ := strings.Cut(string(saved), "\n## ")
	for line := range strings.Lines(lines) {
		cells := strings.Split(strings.TrimSpace(line), " |")
		if len(cells) > 3 && !strings.HasPrefix(line, "| row |") {
			got = append(got, strings.Join(cells[:3], " |"))
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("TABLE.md: missing line %q; run make conformance-table", line)
		}
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("TABLE.md: line %q matches no spec; run make conformance-table", line)
		}
	}
}

var update = flag.Bool("update", false, "write the summary table into docs/conformance.md")

// The summary table in docs/conformance.md is between the lines tableBegin and tableEnd.
const (
	tableBegin = "<!-- conformance table -->\n"
	tableEnd   = "<!-- end of conformance table -->\n"
)

// TestDocumentation checks that docs/conformance.md contains the summary table of TABLE.md.
func TestDocumentation(t *testing.T) {
	saved, err := os.ReadFile("TABLE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, head, found := strings.Cut(string(saved), "\n"+table.SummaryHead)
	rest, _, ended := strings.Cut(head, "\n\n")
	if !found || !ended {
		t.Fatalf("TABLE.md: expected a table that begins with %q", table.SummaryHead)
	}
	want := "\n" + table.SummaryHead + rest + "\n\n"
	path := filepath.Join(root, "docs", "conformance.md")
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, tail, found := strings.Cut(string(page), tableBegin)
	got, after, ended := strings.Cut(tail, tableEnd)
	if !found || !ended {
		t.Fatalf("%s: expected the lines %q and %q", path, tableBegin, tableEnd)
	}
	if *update {
		if err := os.WriteFile(path, []byte(before+tableBegin+want+tableEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: the table differs from TABLE.md; run make golden (-TABLE.md +%s):\n%s", path, path, diff)
	}
}
