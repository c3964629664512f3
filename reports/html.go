package reports

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/check"
)

//go:embed page.html.tmpl
var pageSource string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"seconds": seconds,
	"records": records,
	"more":    more,
	"find": func(id string) check.Check {
		known, _ := check.Find(id)
		return known
	},
	"open": func(v check.Verdict) bool { return v == check.Fail || v == check.Unknown },
}).Parse(pageSource))

// pageData is what the page is made from.
type pageData struct {
	Verdict check.Verdict
	Reason  string
	Runs    []pageRun // worst first
}

type pageRun struct {
	Run
	Sorted []check.Result // worst first
}

// HTML writes the runs as one page that needs nothing beside itself.
func HTML(w io.Writer, runs []Run) error {
	verdict, reason := sum(runs)
	data := pageData{Verdict: verdict, Reason: reason}
	for _, run := range sorted(runs) {
		data.Runs = append(data.Runs, pageRun{Run: run, Sorted: run.sortedResults()})
	}
	var b strings.Builder
	if err := page.Execute(&b, data); err != nil {
		return fmt.Errorf("writing the verdicts as HTML: %w", err)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("writing the verdicts as HTML: %w", err)
	}
	return nil
}
