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

// These are the embedded files of which an HTML page consists. They are the template, our style and
// script, and the chart library uPlot.
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

// page is the template of all HTML pages of this package.
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

// colorOf returns the verdict whose color marks a difference of the given classification. For
// example, undeclared differences have the color of fail.
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

// pageData is the input of the template of the HTML page: the runs, or a comparison, with styles
// and scripts.
type pageData struct {
	Verdict      check.Verdict
	Reason       string
	Runs         []pageRun           // the runs on the page, worst verdict first
	overviewData                     // what only a page of several runs shows
	Pair         bool                // true on the page that compares one pair of runs
	Comparisons  []comparisonSummary // one for each scenario; the page of a pair has only one
	Detail       *Detail             // set on the page of a single run or of a pair
	Timelines    *drawnTimelines     // nil if the page has no timeline

	Styles         template.CSS
	Charts, Script template.JS
}

// pageRun is a run with everything that the template of the HTML page needs to show the run.
type pageRun struct {
	Run
	Sorted []check.Result // the results of the run, worst first
	// CheckAnchor is the prefix of the HTML IDs of the run's checks, such as "check-". On a page
	// of several runs, each run has its own prefix, so that the IDs are unique.
	CheckAnchor string
	// Anchor is the prefix of the HTML IDs of the run's evidence of violations, such as "v". On a
	// page of several runs, each run has its own prefix, so that the IDs are unique.
	Anchor string
	// Marks is the prefix of links from the run's evidence to the marks on the timeline that
	// show a violation.
	Marks string
	// Page is the link to the page that shows only this run. It is empty on that page.
	Page string
	// HasTimeline is true if the page contains the timeline of this run.
	HasTimeline bool
	// Full is true if the page has a section about the run. On a page of several runs, runs with
	// the verdict pass or not-exercised have only one line.
	Full bool
	// Folded is true if the run's section contains the table of checks, collapsed. Pages of
	// several runs have such sections. On other pages, the table has a section of its own.
	Folded bool
}

// pageResult is one result of a run, as input of an HTML template such as that of a table row.
type pageResult struct {
	Run    pageRun
	Result check.Result
}

// pageResults is several results of a run, as input of an HTML template such as the table of
// checks.
type pageResults struct {
	Run     pageRun
	Results []check.Result
}

// pageEvidence is the description of one violation (evidence), as input of the HTML template that
// shows it.
type pageEvidence struct {
	Run      pageRun
	Evidence check.Evidence
}

// Listed returns the results that have a row in the page's table of checks. The other results are
// those that Inapplicable returns.
func (r pageRun) Listed() []check.Result {
	listed, _ := r.listedResults()
	return listed
}

// Inapplicable returns the results of checks that apply to none of the controllers under test. The
// page shows these results in a collapsed table.
func (r pageRun) Inapplicable() []check.Result {
	_, inapplicable := r.listedResults()
	return inapplicable
}

// maxFindings is the maximum number of failed or unknown checks that a run's summary explains in
// full.
const maxFindings = 3

// Findings returns the results that explain the run's verdict, at most maxFindings. Each has the
// same verdict as the run. The summary of the run shows them in full.
//
// Findings omits checks that are unknown for the same reason. Such a reason is about the run, not
// about the checks, for example that the history is incomplete.
func (r pageRun) Findings() []check.Result {
	findings := slices.DeleteFunc(r.notPassed(), func(result check.Result) bool {
		return result.Verdict != r.Verdict || r.sharesReason(result)
	})
	return findings[:min(len(findings), maxFindings)]
}

// OtherFindings returns the results that did not pass and are not in [pageRun.Findings]. The
// summary of the run only links to these results.
func (r pageRun) OtherFindings() []check.Result {
	findings := r.Findings()
	return slices.DeleteFunc(r.notPassed(), func(result check.Result) bool {
		return slices.ContainsFunc(findings, func(f check.Result) bool { return f.Check == result.Check })
	})
}

// countResults counts results by verdict, and returns a text such as "2 checks: 1 fail, 1 pass".
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

// countsByVerdict formats numbers by verdict as text, worst verdict first, such as "1 fail, 5
// pass". It omits verdicts with the number 0.
func countsByVerdict(count map[check.Verdict]int) string {
	var parts []string
	for _, verdict := range worstFirst {
		if count[verdict] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count[verdict], verdict))
		}
	}
	return strings.Join(parts, ", ")
}

// Passed returns the runs for which a page of several runs has only one line, because their Full
// is false. It omits runs whose directory was deleted, because there is no page to which the line
// could link.
func (d *pageData) Passed() []pageRun {
	return slices.DeleteFunc(slices.Clone(d.Runs), func(r pageRun) bool { return r.Full || r.Directory == "" })
}

// drawnTimelines has the timelines that a page draws: one for a single run, two for a pair.
type drawnTimelines struct {
	Runs []*drawnTimeline `json:"runs"`
	// Knots aligns the two timelines of a pair. It has one list of times for each run, in
	// microseconds, from [timeline.Align]. Times with the same index belong to the same step or
	// phase. The page draws them at the same place. Knots is empty for a single run.
	Knots [][]int64 `json:"knots,omitempty"`
}

// HTML writes runs as one self-contained page.
//
// The argument detail has the details of a single run, and must be nil for several runs. Links to
// the pages of runs are relative to the directory dir.
func HTML(w io.Writer, runs []Run, detail *Detail, dir string) error {
	return series{runs: runs}.html(w, detail, dir)
}

// html writes the HTML page about the runs of the series; see [HTML].
func (s series) html(w io.Writer, detail *Detail, dir string) error {
	runs := s.runs
	verdict, reason := s.summarize()
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

// write adds the styles and scripts to the data, fills in the template, and writes the page to w.
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

// pageOf returns the path of a run's HTML page, relative to the directory dir.
func pageOf(run *Run, dir string) string {
	path := filepath.Join(run.Directory, PageName)
	if relative, err := filepath.Rel(dir, path); err == nil {
		path = relative
	}
	return filepath.ToSlash(path)
}

// checkPageOf returns the link to a check's section in a run's HTML page. The link is relative to
// the directory dir.
func checkPageOf(run *Run, check, dir string) string { return pageOf(run, dir) + "#check-" + check }
