package reports

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/compare"
)

// The parts of the HTML page: the template, the style and the script, and the chart library
// uPlot.
var (
	//go:embed page.html.tmpl
	pageSource string
	//go:embed assets/page.css
	pageStyles string
	//go:embed assets/page.js
	pageScript string
	//go:embed assets/uplot/uPlot.iife.min.js
	chartScript string
	//go:embed assets/uplot/uPlot.min.css
	chartStyles string
)

// page is the template of the HTML page.
var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"seconds": seconds,
	"records": records,
	"more":    more,
	"inc":     func(i int) int { return i + 1 },
	"find": func(id string) check.Check {
		found, _ := check.Find(id)
		return found
	},
	"color":             colorOf,
	"scope":             func(id string) string { return scopeOf(id) },
	"showsScopes":       showsScopes,
	"countInapplicable": countInapplicable,
	"countsTable": func(verdicts []check.Verdict, rows []verdictCounts, scenarios bool) verdictCountsTable {
		return verdictCountsTable{verdicts, rows, scenarios}
	},
	"aspect":               aspect,
	"legend":               func() string { return classificationLegend },
	"needsNoExplanation":   needsNoExplanation,
	"countResults":         countResults,
	"resultOf":             func(run pageRun, result check.Result) pageResult { return pageResult{run, result} },
	"resultsOf":            func(run pageRun, results []check.Result) pageResults { return pageResults{run, results} },
	"evidenceOf":           func(run pageRun, e check.Evidence) pageEvidence { return pageEvidence{run, e} },
	"differencesWithTable": func(s comparisonSummary, group reasonGroup) differenceTable { return differenceTable{s, group.All} },
}).Parse(pageSource))

// colorOf returns the verdict whose color the page uses for a classification of differences.
func colorOf(c compare.Classification) check.Verdict {
	switch c {
	case compare.Undeclared, compare.BothWrong:
		return check.Fail
	case compare.Declared:
		return check.Unknown
	default:
		return check.NotExercised
	}
}

// pageData is the input of the template of the HTML page.
type pageData struct {
	Verdict      check.Verdict
	Reason       string
	Runs         []pageRun           // worst first
	overviewData                     // set on a page of several runs
	Pair         bool                // true on the page of a pair, which compares two runs
	Comparisons  []comparisonSummary // one for each scenario; the page of a pair has one
	Detail       *Detail             // set on the page of a single run or of a pair
	Timelines    *drawnTimelines     // nil if the page has no timeline

	Styles         template.CSS
	Charts, Script template.JS
}

// pageRun is a run with the data that the template of the HTML page needs to show it.
type pageRun struct {
	Run
	Sorted []check.Result // the results of the run, worst first
	// CheckAnchor is the prefix of the HTML IDs of checks. It makes them unique on a page of
	// several runs.
	CheckAnchor string
	// Anchor is the prefix of the HTML IDs of pieces of evidence. It makes them unique on a
	// page of several runs.
	Anchor string
	// Marks is the prefix of links from the evidence of the run to marks on the timeline.
	Marks string
	// Page is the link to the page of this run alone. It is empty on that page itself.
	Page string
	// HasTimeline is true if this page has the run's timeline.
	HasTimeline bool
	// Full is true if the page has a section about the run. On a page of several runs, a run
	// whose verdict is pass or not-exercised has only one line.
	Full bool
	// Folded is true on a page of several runs: the section of the run then contains the table
	// of checks, collapsed. On other pages the table has a section of its own.
	Folded bool
}

// pageResult is the input of an HTML template that shows one result of a run.
type pageResult struct {
	Run    pageRun
	Result check.Result
}

// pageResults is the input of an HTML template that shows several results of a run.
type pageResults struct {
	Run     pageRun
	Results []check.Result
}

// pageEvidence is the input of an HTML template that shows one piece of evidence of a run.
type pageEvidence struct {
	Run      pageRun
	Evidence check.Evidence
}

// Listed returns the results that have a row in the page's table of checks: all except those
// that Inapplicable returns.
func (r pageRun) Listed() []check.Result {
	listed, _ := r.listedResults()
	return listed
}

// Inapplicable returns the results of checks that are only for controllers that are not under
// test. The page shows them in a collapsed table of their own.
func (r pageRun) Inapplicable() []check.Result {
	_, inapplicable := r.listedResults()
	return inapplicable
}

// maxFindings is the maximum number of checks that the summary of a run explains in full.
const maxFindings = 3

// Findings returns the results that the summary of the run explains in full, at most
// maxFindings. All of them have the verdict of the run.
//
// It omits checks that are unknown for the same reason. Such a reason is about the run, not
// about the checks: for example, a gap in the history.
func (r pageRun) Findings() []check.Result {
	findings := slices.DeleteFunc(r.notPassed(), func(result check.Result) bool {
		return result.Verdict != r.Verdict || r.sharesReason(result)
	})
	return findings[:min(len(findings), maxFindings)]
}

// OtherFindings returns the results that did not pass and that the summary of the run does not
// explain ([pageRun.Findings]). The summary only links to them.
func (r pageRun) OtherFindings() []check.Result {
	findings := r.Findings()
	return slices.DeleteFunc(r.notPassed(), func(result check.Result) bool {
		return slices.ContainsFunc(findings, func(f check.Result) bool { return f.Check == result.Check })
	})
}

// countResults returns the number of results by verdict as text, such as "2 checks: 1 fail, 1
// pass".
func countResults(results []check.Result) string {
	count := map[check.Verdict]int{}
	for _, result := range results {
		count[result.Verdict]++
	}
	noun := "checks"
	if len(results) == 1 {
		noun = "check"
	}
	return fmt.Sprintf("%d %s: %s", len(results), noun, countsByVerdict(count))
}

// countsByVerdict returns counts as text, worst verdict first, such as "1 fail, 5 pass".
func countsByVerdict(count map[check.Verdict]int) string {
	var parts []string
	for _, verdict := range worstFirst {
		if count[verdict] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count[verdict], verdict))
		}
	}
	return strings.Join(parts, ", ")
}

// Passed returns the runs for which a page of several runs has only one line: those that are
// not Full. It leaves out runs whose directory was deleted, because the line could link to
// nothing.
func (d *pageData) Passed() []pageRun {
	return slices.DeleteFunc(slices.Clone(d.Runs), func(r pageRun) bool { return r.Full || r.Directory == "" })
}

// drawnTimelines has the one or two timelines of a page.
type drawnTimelines struct {
	Runs []*drawnTimeline `json:"runs"`
	// Knots has a list of times for each of two runs, which [timeline.Align] returns. Times
	// with the same index are the same point of both runs, and the page draws them at the same
	// place. Knots is empty for a single run.
	Knots [][]int64 `json:"knots,omitempty"`
}

// HTML writes runs as one self-contained page.
//
// The argument detail has the details of a single run; it must be nil for several runs. Links
// to the pages of runs are relative to the directory dir.
func HTML(w io.Writer, runs []Run, detail *Detail, dir string) error {
	verdict, reason := summarize(runs)
	data := &pageData{Verdict: verdict, Reason: reason, Detail: detail}
	for i, run := range sorted(runs) {
		r := pageRun{Run: run, Sorted: run.sortedResults(), Marks: "s", CheckAnchor: "check-", Anchor: "v"}
		r.Full = len(runs) == 1 || !needsNoExplanation(run.Verdict)
		if len(runs) > 1 {
			r.CheckAnchor, r.Anchor = fmt.Sprintf("run%d-check-", i), fmt.Sprintf("v%d", i)
			r.Page, r.Folded = pageOf(&run, dir), true
		}
		data.Runs = append(data.Runs, r)
	}
	if detail != nil && detail.Timeline != nil {
		data.Timelines = &drawnTimelines{Runs: []*drawnTimeline{draw(detail.Timeline)}}
		data.Runs[0].HasTimeline = true
	}
	if len(runs) > 1 {
		data.overviewData = overview(runs, dir)
	}
	return data.write(w)
}

// write adds the styles and the scripts to the data, and writes the page.
func (d *pageData) write(w io.Writer) error {
	d.Styles = template.CSS(pageStyles)
	if d.Timelines != nil {
		d.Styles += template.CSS(chartStyles)
		d.Charts, d.Script = template.JS(chartScript), template.JS(pageScript)
	}
	if err := page.Execute(w, d); err != nil {
		return fmt.Errorf("writing the HTML page: %w", err)
	}
	return nil
}

// pageOf returns the path of a run's page relative to the directory dir.
func pageOf(run *Run, dir string) string {
	path := filepath.Join(run.Directory, PageName)
	if relative, err := filepath.Rel(dir, path); err == nil {
		path = relative
	}
	return filepath.ToSlash(path)
}

// checkPageOf returns the link to a check on the page of a run, relative to the directory dir.
func checkPageOf(run *Run, check, dir string) string { return pageOf(run, dir) + "#check-" + check }
