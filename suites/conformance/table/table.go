// Package table writes the results of one run of the conformance suite as tables. For each program
// under test, the tables contain the results of each row and of each statement. A row is a tested
// behavior; see package rows. A statement is a numbered promise of controllers/CONTRACT.md.
package table

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	pretty "github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/kube-gauntlet/gauntlet/suites/conformance/rows"
)

// State is the outcome of a Ginkgo spec: pass, fail, skipped or not run.
type State string

// These are the outcomes of a Ginkgo spec.
const (
	Failed  State = "fail"
	Skipped State = "skipped"
	Passed  State = "pass"
	NotRun  State = "-" // a label filter excluded the Ginkgo spec
)

// Result is the outcome of one Ginkgo spec for one program under test.
type Result struct {
	Row      string        `json:"row"`  // ID of the row that the Ginkgo spec tests, such as "ReplicaSet/TestAdoption"
	Spec     string        `json:"spec"` // text of the Ginkgo spec, such as "a Deployment follows its scale subresource"
	Subject  string        `json:"subject"`
	State    State         `json:"state"`
	Reason   string        `json:"why,omitempty"` // why the Ginkgo spec failed or was skipped, otherwise ""
	Duration time.Duration `json:"took"`          // duration of the Ginkgo spec, in nanoseconds
}

// Run contains the results of one run of the conformance suite.
type Run struct {
	Kubernetes string   `json:"kubernetes"` // version of upstream's controllers
	Provider   string   `json:"provider"`
	Profile    string   `json:"profile,omitempty"` // name of the fault profile; "" means no faults
	Subjects   []string `json:"subjects"`
	Results    []Result `json:"results"`
}

// JSON writes the run as indented JSON.
func JSON(w io.Writer, run Run) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(run)
}

// Terminal writes a table for a terminal, with the results of each statement. Below the table,
// it lists the failed and the skipped specs with their reasons.
func Terminal(w io.Writer, run Run) error {
	t := pretty.NewWriter()
	t.SetStyle(pretty.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	t.Style().Format.Footer = text.FormatDefault
	header := pretty.Row{"statement", "specs"}
	footer := pretty.Row{"all", len(specTexts(run.Results))}
	for _, subject := range run.Subjects {
		header = append(header, subject)
		footer = append(footer, summary(run.Results, subject))
	}
	t.AppendHeader(header)
	for _, clause := range statementIDs() {
		of := run.resultsOfStatement(clause)
		line := pretty.Row{clause, len(specTexts(of))}
		for _, subject := range run.Subjects {
			line = append(line, summary(of, subject))
		}
		t.AppendRow(line)
	}
	t.AppendFooter(footer)
	_, err := fmt.Fprintf(w, "%s\n%s", t.Render(), failedAndSkipped(run))
	return err
}

// failedAndSkipped returns the failed and skipped specs as text: one line for each, with the
// first line of the reason.
func failedAndSkipped(run Run) string {
	var b strings.Builder
	for _, r := range run.Results {
		if r.State == Failed || r.State == Skipped {
			why, _, _ := strings.Cut(r.Reason, "\n")
			fmt.Fprintf(&b, "%s %s: %s (%s): %s\n", strings.ToUpper(string(r.State)), r.Subject, r.Spec, r.Row, why)
		}
	}
	return b.String()
}

// statementIDs returns the IDs of all statements in controllers/CONTRACT.md that the suite tests,
// sorted by heading and number. An example is "ReplicaSet 5".
func statementIDs() []string {
	var all []string
	for _, row := range rows.All() {
		all = append(all, row.StatementIDs()...)
	}
	order := func(clause string) (heading, number int) {
		name, digits, _ := strings.Cut(clause, " ")
		_, _ = fmt.Sscan(digits, &number) // ignore the error: an ID from StatementIDs ends with a number
		return slices.Index(rows.Controllers, rows.Controller(name)), number
	}
	slices.SortFunc(all, func(a, b string) int {
		aHeading, aNumber := order(a)
		bHeading, bNumber := order(b)
		return cmp.Or(aHeading-bHeading, aNumber-bNumber)
	})
	return slices.Compact(all)
}

// resultsOfStatement returns the results of all Ginkgo specs that test a statement, one numbered
// promise of the contract. The argument clause is the ID of the statement, such as "ReplicaSet 5".
func (run Run) resultsOfStatement(clause string) []Result {
	var some []Result
	for _, result := range run.Results {
		if row, ok := rows.Find(result.Row); ok && slices.Contains(row.StatementIDs(), clause) {
			some = append(some, result)
		}
	}
	return some
}

// resultsOfRow returns the results of all Ginkgo specs that test a row, which is one behavior of a
// controller.
func (run Run) resultsOfRow(row rows.Row) []Result {
	var some []Result
	for _, result := range run.Results {
		if result.Row == row.ID() {
			some = append(some, result)
		}
	}
	return some
}

// specTexts returns the text of each Ginkgo spec in results. Each text occurs only once, although
// a spec has one result for each program under test.
func specTexts(results []Result) []string {
	var all []string
	for _, result := range results {
		all = append(all, result.Row+": "+result.Spec)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// countStates returns, for each state, the number of a tested program's results with this state.
func countStates(results []Result, subject string) map[State]int {
	count := map[State]int{}
	for _, result := range results {
		if result.Subject == subject {
			count[result.State]++
		}
	}
	return count
}

// summary returns a short text about a tested program's results, such as "FAIL 1 of 2" or "pass, 1
// skipped".
func summary(results []Result, subject string) string {
	count := countStates(results, subject)
	ran := count[Failed] + count[Passed]
	switch {
	case count[Failed] > 0:
		return fmt.Sprintf("FAIL %d of %d", count[Failed], ran)
	case count[Skipped] > 0 && ran > 0:
		return fmt.Sprintf("pass, %d skipped", count[Skipped])
	case count[Skipped] > 0:
		return string(Skipped)
	case ran > 0:
		return string(Passed)
	default:
		return string(NotRun)
	}
}

// SummaryHead is the beginning of the summary table in the Markdown page. A test finds the table by
// this text.
const SummaryHead = "| Kubernetes "

// writeSummary writes the summary table. Each line has the number of
// statements, specs and results of one controller.
func (run Run) writeSummary(b *strings.Builder) {
	where := run.Provider
	if run.Profile != "" {
		where += ", profile " + run.Profile
	}
	fmt.Fprintf(b, "%s%s, %s | statements | specs | %s |\n|---|---:|---:|%s\n",
		SummaryHead, run.Kubernetes, where, strings.Join(run.Subjects, " | "), strings.Repeat("---|", len(run.Subjects)))
	for _, controller := range rows.Controllers {
		var of []Result
		var statements []string
		for _, row := range rows.All() {
			if row.Controller == controller {
				statements = append(statements, row.StatementIDs()...)
				of = append(of, run.resultsOfRow(row)...)
			}
		}
		slices.Sort(statements)
		fmt.Fprintf(b, "| %s | %d | %d |", controller, len(slices.Compact(statements)), len(specTexts(of)))
		for _, subject := range run.Subjects {
			fmt.Fprintf(b, " %s |", stateCounts(of, subject))
		}
		b.WriteString("\n")
	}
}

// stateCounts returns the numbers of a tested program's results as text, such as "1 fail, 2 pass".
func stateCounts(results []Result, subject string) string {
	count := countStates(results, subject)
	var parts []string
	for _, state := range []State{Failed, Skipped, Passed} {
		if count[state] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count[state], state))
		}
	}
	return cmp.Or(strings.Join(parts, ", "), string(NotRun))
}

// Markdown writes the results as a Markdown page. The page contains all rows (behaviors to test),
// even rows without specs.
func Markdown(w io.Writer, run Run) error {
	var b strings.Builder
	b.WriteString("# Conformance\n\n")
	fmt.Fprintf(&b, "Results of the specs in `suites/conformance` on provider `%s`. The upstream subject is kube-controller-manager of Kubernetes %s. `make conformance-table` writes this page. A test of this repository ensures that the page has a line for every spec.\n\nA row is a test of Kubernetes, or a statement of [CONTRACT.md](../../controllers/CONTRACT.md) that no test of Kubernetes covers. The column `statements` lists the numbers of the statements that a row covers.\n", run.Provider, run.Kubernetes)
	b.WriteString("\n")
	run.writeSummary(&b)
	for _, controller := range rows.Controllers {
		fmt.Fprintf(&b, "\n## %s\n\n", controller)
		fmt.Fprintf(&b, "| row | statements | spec | %s |\n|---|---|---|%s\n", strings.Join(run.Subjects, " | "), strings.Repeat("---|", len(run.Subjects)))
		for _, row := range rows.All() {
			if row.Controller == controller {
				run.writeRow(&b, row)
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeRow writes the table lines of a row, which is one tested behavior: one line for each Ginkgo
// spec. If the row has no spec, writeRow writes one line with the reason.
func (run Run) writeRow(b *strings.Builder, row rows.Row) {
	if row.Pending != "" {
		fmt.Fprintf(b, "%s*pending: %s* |%s\n", Prefix(row), row.Pending, strings.Repeat(" |", len(run.Subjects)))
		return
	}
	var specs []string
	for _, result := range run.Results {
		if result.Row == row.ID() && !slices.Contains(specs, result.Spec) {
			specs = append(specs, result.Spec)
		}
	}
	for _, spec := range specs {
		fmt.Fprintf(b, "%s%s |", Prefix(row), spec)
		for _, subject := range run.Subjects {
			fmt.Fprintf(b, " %s |", run.cell(row.ID(), spec, subject))
		}
		b.WriteString("\n")
	}
}

// Prefix returns the first cells of the table lines about one tested behavior (a row): its name and
// its statements. Lines that begin with the same cells belong to one row.
func Prefix(row rows.Row) string {
	numbers := make([]string, len(row.Statements))
	for i, number := range row.Statements {
		numbers[i] = fmt.Sprint(number)
	}
	name := row.Name
	if row.Level == rows.Integration {
		name = "`" + name + "`"
	}
	return fmt.Sprintf("| %s | %s | ", name, strings.Join(numbers, ", "))
}

// cell returns the text of the table cell with the result of a Ginkgo spec for a program under
// test.
func (run Run) cell(row, spec, subject string) string {
	for _, r := range run.Results {
		if r.Row == row && r.Spec == spec && r.Subject == subject {
			if r.State == Skipped {
				return "skipped: " + r.Reason
			}
			return string(r.State)
		}
	}
	return string(NotRun)
}
