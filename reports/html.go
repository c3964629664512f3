package reports

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"path/filepath"
	"slices"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/compare"
)

// The page, and what it is made with. It has all of it in itself.
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
		known, _ := check.Find(id)
		return known
	},
	"standing": func(s compare.Classification) check.Verdict {
		switch s {
		case compare.Undeclared, compare.BothWrong:
			return check.Fail
		case compare.Declared:
			return check.Unknown
		default:
			return check.NotExercised
		}
	},
	"tabled": func(verdicts []check.Verdict, rows []verdictCounts, scenarios bool) verdictCountsTable {
		return verdictCountsTable{verdicts, rows, scenarios}
	},
	"aspect":    aspect,
	"standings": func() string { return classificationLegend },
	"comfort":   needsNoExplanation,
	"judged":    func(run pageRun, result check.Result) pageCheck { return pageCheck{run, result} },
	"held":      countResults,
}).Parse(pageSource))

// pageData is what the page is made from.
type pageData struct {
	Verdict     check.Verdict
	Reason      string
	Runs        []pageRun          // worst first
	overviewData                        // of several runs
	Compared    *comparedPair      // nil unless two runs are compared
	Comparisons []comparedScenario // of several pairs; their pages have more
	Detail      *Detail            // of a single run
	Drawings    *drawnTimelines          // nil if there is nothing to draw

	Styles         template.CSS
	Charts, Script template.JS
}

type pageRun struct {
	Run
	Sorted []check.Result // worst first
	// Anchor begins the names that links lead to.
	Anchor string
	// Marks begins the names that links to marks have.
	Marks string
	// Page leads to the run's own page, if this is not it.
	Page string
	// Drawing is whether the run's timeline is on this page.
	Drawing bool
	// Full is whether more than a line is shown.
	Full bool
}

// pageCheck is a result of a run.
type pageCheck struct {
	Run    pageRun
	Result check.Result
}

// Broken are the results that are no comfort.
func (r pageRun) Broken() []check.Result { return r.notPassed() }

// Held are the results of guarantees that nothing was seen to break.
func (r pageRun) Held() []check.Result {
	return slices.DeleteFunc(slices.Clone(r.Sorted), func(result check.Result) bool { return !needsNoExplanation(result.Verdict) })
}

// countResults says how many guarantees held, and how many were not put to the test.
func countResults(results []check.Result) string {
	passed := 0
	for _, result := range results {
		if result.Verdict == check.Pass {
			passed++
		}
	}
	return fmt.Sprintf("%d checks held, %d not put to the test", passed, len(results)-passed)
}

// Passed are the runs of which only a line is shown. Those that were not kept are
// only counted.
func (d *pageData) Passed() []pageRun {
	return slices.DeleteFunc(slices.Clone(d.Runs), func(r pageRun) bool { return r.Full || r.Directory == "" })
}

// drawnTimelines are the timelines of a page.
type drawnTimelines struct {
	Runs []*drawnTimeline `json:"runs"`
	// Knots are, for each run, the times that are to fall together; nothing for a
	// single run.
	Knots [][]int64 `json:"knots,omitempty"`
}

// HTML writes the runs as one page that needs nothing beside itself. Detail,
// which may be nil, is shown of a single run. The pages of several runs are
// linked to as seen from the directory dir.
func HTML(w io.Writer, runs []Run, detail *Detail, dir string) error {
	verdict, reason := summarize(runs)
	data := &pageData{Verdict: verdict, Reason: reason, Detail: detail}
	for i, run := range sorted(runs) {
		r := pageRun{Run: run, Sorted: run.sortedResults(), Anchor: fmt.Sprintf("v%d", i), Marks: "s"}
		r.Full = len(runs) == 1 || !needsNoExplanation(run.Verdict)
		if len(runs) == 1 {
			r.Anchor = "v"
		} else {
			r.Page = pageOf(&run, dir)
		}
		data.Runs = append(data.Runs, r)
	}
	if detail != nil && detail.Timeline != nil {
		data.Drawings = &drawnTimelines{Runs: []*drawnTimeline{draw(detail.Timeline)}}
		data.Runs[0].Drawing = true
	}
	if len(runs) > 1 {
		data.overviewData = overview(runs, dir)
	}
	return data.write(w)
}

// write fills in the template.
func (d *pageData) write(w io.Writer) error {
	d.Styles = template.CSS(pageStyles)
	if d.Drawings != nil {
		d.Styles += template.CSS(chartStyles)
		d.Charts, d.Script = template.JS(chartScript), template.JS(pageScript)
	}
	if err := page.Execute(w, d); err != nil {
		return fmt.Errorf("writing the verdicts as HTML: %w", err)
	}
	return nil
}

// pageOf is the way from a directory to the page of a run.
func pageOf(run *Run, dir string) string {
	path := filepath.Join(run.Directory, PageName)
	if relative, err := filepath.Rel(dir, path); err == nil {
		path = relative
	}
	return filepath.ToSlash(path)
}
