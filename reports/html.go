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

// The page embeds these files.
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

// colorOf returns the verdict whose color the page uses for a classification of
// differences.
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

// pageData is the input of the page's template.
type pageData struct {
	Verdict      check.Verdict
	Reason       string
	Runs         []pageRun           // worst first
	overviewData                     // set if there are several runs
	Pair         bool                // the page compares two runs
	Comparisons  []comparisonSummary // one for each scenario; the page of a pair has one
	Detail       *Detail             // set if there is a single run
	Timelines    *drawnTimelines     // nil without a history

	Styles         template.CSS
	Charts, Script template.JS
}

// pageRun is a run as the page shows it.
type pageRun struct {
	Run
	Sorted []check.Result // worst first
	// CheckAnchor is the prefix of the fragment IDs of the run's checks. Anchor is the
	// prefix of the fragment IDs of the run's evidence.
	CheckAnchor, Anchor string
	// Marks is the prefix of the fragment IDs of the marks in the run's timeline.
	Marks string
	// Page is the link to the page of the run. It is empty on that page itself.
	Page string
	// HasTimeline reports whether this page has the run's timeline.
	HasTimeline bool
	// Full reports whether the page shows more than one line about the run.
	Full bool
	// Folded reports whether the table of checks is collapsed in the section of the run.
	// Otherwise the table has a section of its own.
	Folded bool
}

// pageResult is a result with its run.
type pageResult struct {
	Run    pageRun
	Result check.Result
}

// pageResults are results of a run.
type pageResults struct {
	Run     pageRun
	Results []check.Result
}

// pageEvidence is a piece of evidence with its run.
type pageEvidence struct {
	Run      pageRun
	Evidence check.Evidence
}

// Listed returns the results that the table of checks lists.
func (r pageRun) Listed() []check.Result {
	listed, _ := r.listedResults()
	return listed
}

// Inapplicable returns the results that the table of checks summarizes in one line.
func (r pageRun) Inapplicable() []check.Result {
	_, inapplicable := r.listedResults()
	return inapplicable
}

// maxFindings is the number of checks that a run's summary explains in full.
const maxFindings = 3

// Findings returns the results that the summary of the run explains in full, at most
// maxFindings. All of them have the verdict of the run. Findings omits checks that are
// unknown for the same reason, because that reason concerns the whole run.
func (r pageRun) Findings() []check.Result {
	findings := slices.DeleteFunc(r.notPassed(), func(result check.Result) bool {
		return result.Verdict != r.Verdict || r.sharesReason(result)
	})
	return findings[:min(len(findings), maxFindings)]
}

// OtherFindings returns the results that did not pass and are not among [pageRun.Findings].
func (r pageRun) OtherFindings() []check.Result {
	findings := r.Findings()
	return slices.DeleteFunc(r.notPassed(), func(result check.Result) bool {
		return slices.ContainsFunc(findings, func(f check.Result) bool { return f.Check == result.Check })
	})
}

// countResults counts results by verdict, such as "2 checks: 1 fail, 1 pass".
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

// countsByVerdict lists counts, worst verdict first, such as "1 fail, 5 pass".
func countsByVerdict(count map[check.Verdict]int) string {
	var parts []string
	for _, verdict := range worstFirst {
		if count[verdict] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count[verdict], verdict))
		}
	}
	return strings.Join(parts, ", ")
}

// Passed returns the runs that get only one line on the page. It omits runs without a
// directory.
func (d *pageData) Passed() []pageRun {
	return slices.DeleteFunc(slices.Clone(d.Runs), func(r pageRun) bool { return r.Full || r.Directory == "" })
}

// drawnTimelines are the timelines of a page.
type drawnTimelines struct {
	Runs []*drawnTimeline `json:"runs"`
	// Knots has the times of each run at which the page aligns the two timelines. It is
	// empty for a single run.
	Knots [][]int64 `json:"knots,omitempty"`
}

// HTML writes the runs as one self-contained page. The argument detail belongs to a single
// run and may be nil. Links to the pages of several runs are relative to the directory dir.
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

// write executes the template.
func (d *pageData) write(w io.Writer) error {
	d.Styles = template.CSS(pageStyles)
	if d.Timelines != nil {
		d.Styles += template.CSS(chartStyles)
		d.Charts, d.Script = template.JS(chartScript), template.JS(pageScript)
	}
	if err := page.Execute(w, d); err != nil {
		return fmt.Errorf("writing the HTML report: %w", err)
	}
	return nil
}

// pageOf returns the path of a run's page relative to a directory.
func pageOf(run *Run, dir string) string {
	path := filepath.Join(run.Directory, PageName)
	if relative, err := filepath.Rel(dir, path); err == nil {
		path = relative
	}
	return filepath.ToSlash(path)
}

// checkPageOf returns the link to a check's details on the page of a run.
func checkPageOf(run *Run, check, dir string) string { return pageOf(run, dir) + "#check-" + check }
