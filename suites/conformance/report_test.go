package conformance

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/ginkgo/v2"

	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/suites/conformance/rows"
	"github.com/kube-gauntlet/gauntlet/suites/conformance/specs"
	"github.com/kube-gauntlet/gauntlet/suites/conformance/table"
)

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
	found := specsByRow(ginkgo.PreviewSpecs("conformance"))
	var want []string
	for _, row := range rows.All() {
		if row.Pending != "" {
			want = append(want, table.Prefix(row)+"*pending: "+row.Pending+"*")
		}
		for _, spec := range found[specs.Label(specs.RowPrefix+row.ID())] {
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
