package conformance

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"

	"github.com/kube-gauntlet/gauntlet/controllers"
	"github.com/kube-gauntlet/gauntlet/suites/conformance/rows"
	"github.com/kube-gauntlet/gauntlet/suites/conformance/specs"
)

// TestEveryRowHasItsSpecs checks that each row has the required number of Ginkgo specs, or a
// reason for having none. A row is one tested behavior. Each spec must name an existing row.
func TestEveryRowHasItsSpecs(t *testing.T) {
	for _, problem := range mismatches(rows.All(), specsByRow(ginkgo.PreviewSpecs("conformance"))) {
		t.Error(problem)
	}
}

// specsByRow returns the texts of the Ginkgo specs for the first program under test. A key is the
// ID of the behavior that the specs test, as in the Ginkgo label.
func specsByRow(report types.Report) map[string][]string {
	found := map[string][]string{}
	for _, spec := range report.SpecReports.WithLeafNodeType(types.NodeTypeIt) {
		labels := spec.Labels()
		if !slices.Contains(labels, specs.Label(specs.Subjects()[0])) {
			continue
		}
		row := ""
		if i := slices.IndexFunc(labels, func(l string) bool { return strings.HasPrefix(l, specs.RowPrefix) }); i >= 0 {
			row = labels[i]
		}
		found[row] = append(found[row], spec.LeafNodeText)
	}
	return found
}

// mismatches returns the differences between rows, which are the behaviors to test, and specs. A
// row may have too many or too few specs. A Ginkgo spec may name a row that does not exist.
func mismatches(all []rows.Row, found map[string][]string) []string {
	var problems []string
	known := map[string]bool{}
	for _, row := range all {
		key := specs.Label(specs.RowPrefix + row.ID())
		if known[key] {
			problems = append(problems, fmt.Sprintf("%s: listed twice", row.ID()))
		}
		known[key] = true
		switch has := len(found[key]); {
		case row.Pending != "" && has > 0:
			problems = append(problems, fmt.Sprintf("%s: pending (%s), but has %d specs", row.ID(), row.Pending, has))
		case row.Pending == "" && has != row.Cases:
			problems = append(problems, fmt.Sprintf("%s: %d specs %q, expected %d", row.ID(), has, found[key], row.Cases))
		}
	}
	for key, texts := range found {
		if !known[key] {
			problems = append(problems, fmt.Sprintf("specs of the unknown row %q: %q", key, texts))
		}
	}
	slices.Sort(problems)
	return problems
}

// TestMismatches checks that mismatches finds each kind of difference between rows and specs.
func TestMismatches(t *testing.T) {
	has := rows.Row{Controller: rows.ReplicaSet, Name: "has", Cases: 1}
	lacks := rows.Row{Controller: rows.ReplicaSet, Name: "lacks", Cases: 2}
	waits := rows.Row{Controller: rows.ReplicaSet, Name: "waits", Cases: 1, Pending: "no"}
	got := mismatches([]rows.Row{has, lacks, waits, has}, map[string][]string{
		"row:ReplicaSet-has": {"a"}, "row:ReplicaSet-lacks": {"b"}, "row:ReplicaSet-waits": {"c"}, "row:unknown": {"d"}, "": {"e"},
	})
	want := []string{
		`ReplicaSet/has: listed twice`,
		`ReplicaSet/lacks: 1 specs ["b"], expected 2`,
		`ReplicaSet/waits: pending (no), but has 1 specs`,
		`specs of the unknown row "": ["e"]`,
		`specs of the unknown row "row:unknown": ["d"]`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestEveryStatementHasARow checks that at least one row tests each numbered statement of the
// contract. Rows must not name statements that do not exist.
func TestEveryStatementHasARow(t *testing.T) {
	inContract := map[string]bool{}
	for _, statement := range controllers.Statements() {
		inContract[statement.ID] = true
	}
	covered := map[string]bool{}
	for _, row := range rows.All() {
		for _, clause := range row.StatementIDs() {
			covered[clause] = true
			if !inContract[clause] {
				t.Errorf("%s: the contract has no statement %q", row.ID(), clause)
			}
		}
	}
	for clause := range inContract {
		if !covered[clause] {
			t.Errorf("statement %q of the contract has no row", clause)
		}
	}
}
