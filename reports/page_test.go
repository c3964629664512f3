package reports

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"

	"github.com/kube-gauntlet/gauntlet/harness/check"
)

// clean checks that the page wrote nothing to the console and loaded no other files.
func (v *visitor) clean() {
	v.t.Helper()
	if loaded := ask[[]string](v, `performance.getEntriesByType('resource').map(r => r.name)`); len(loaded) > 0 {
		v.t.Errorf("the page loaded %v", loaded)
	}
	if said := v.consoleMessages(); len(said) > 0 {
		v.t.Errorf("the browser's console:\n%s", strings.Join(said, "\n"))
	}
}

// TestPageFromViolationToEvents follows the link from the description of a violation to an event on
// the timeline. It then follows the link from the event back to the description.
func TestPageFromViolationToEvents(t *testing.T) {
	v := open(t, 1280, 1600, laggingRun(t, 40))
	v.screenshot("failed-light")
	if got := ask[string](v, `document.querySelector('h1').innerText`); got != "gauntlet: fail" {
		t.Errorf("heading %q", got)
	}
	v.do(chromedp.Click(chromedp.CSS("#v-expectations-1 a")))
	v.await(`document.querySelector('.selected-mark').innerText.includes('Evidence of expectations 1')`)
	if got := ask[string](v, `document.querySelector('.selected-mark strong').innerText`); got != "create pods web-00000" {
		t.Errorf("the evidence leads to %q", got)
	}
	if !ask[bool](v, `document.querySelector('.row.selected').className.includes('cited')`) {
		t.Error("the selected event is not marked as evidence")
	}
	v.screenshot("failed-followed")
	v.do(chromedp.Click(chromedp.CSS(".selected-mark a")))
	v.await(`document.activeElement.id === 'v-expectations-1'`)
	v.clean()
}

// TestPageLayout checks the order of the page's parts: summary of the failure, timeline, table of
// checks. In the table, only checks that did not pass are open. A link to another check must open
// that check.
func TestPageLayout(t *testing.T) {
	r := laggingRun(t, 3)
	r.Results = append(r.Results,
		result("burst-limit", check.Pass, 40, "never more than 40 creates outstanding"),
		result("no-writes-when-settled", check.Unknown, 0, "the history ends early"),
		result("ownership", check.NotExercised, 0, "there was no other controller's pod"))
	v := open(t, 1280, 1600, r)
	sections := ask[[]string](v, `[...document.querySelectorAll('main > section')].slice(0, 4).map(s => s.getAttribute('aria-label'))`)
	if want := []string{"lagging on ours", "timeline of ours", "charts", "checks of lagging on ours"}; !slices.Equal(sections, want) {
		t.Errorf("sections %q; want %q", sections, want)
	}
	summary := ask[string](v, `document.querySelector('.run').innerText`)
	for _, want := range []string{"one create too many", "Expected", "none", "record 10", "no-writes-when-settled unknown", "gauntlet run lagging --subject=ours --seed=42"} {
		if !strings.Contains(summary, want) {
			t.Errorf("the summary lacks %q:\n%s", want, summary)
		}
	}
	rows := ask[[]string](v, `[...document.querySelectorAll('.checks tbody tr')].map(r => r.id + ' ' + r.querySelector('details').open)`)
	if want := []string{"check-expectations true", "check-no-writes-when-settled true", "check-burst-limit false", "check-ownership false"}; !slices.Equal(rows, want) {
		t.Errorf("rows %q; want %q", rows, want)
	}
	ask[bool](v, `(location.hash = '#check-burst-limit', true)`)
	v.await(`document.activeElement.id === 'check-burst-limit' && document.activeElement.querySelector('details').open`)
	v.clean()
}

// TestPageOfAnyKind checks the page of a run with a StatefulSet and custom resources. The page
// must show their tracks and charts, and the contract checks that do not apply.
func TestPageOfAnyKind(t *testing.T) {
	v := open(t, 1280, 1800, databaseRun(t))
	tracks := ask[[]string](v, `gauntlet.timelines[0].tracksShown.map(i => gauntlet.timelines[0].run.tracks[i]).filter(t => t.group === 'objects').map(t => t.name)`)
	want := []string{
		"persistentvolumeclaims data-main-data-0", "databases.example.com main", "backups.example.com main-qq9zv", "backups.example.com main-x7k2p",
		"statefulsets.apps main-data", "pods of statefulsets.apps main-data", "controllerrevisions.apps of statefulsets.apps main-data", "services main", "endpoints main",
	}
	if diff := cmp.Diff(want, tracks); diff != "" {
		t.Errorf("tracks (-want +got):\n%s", diff)
	}
	charts := ask[[]string](v, `gauntlet.timelines[0].run.charts.map(c => c.title)`)
	for _, title := range []string{"Pods of statefulsets.apps main-data", "Pods of databases.example.com main", "Endpoints main"} {
		if !slices.Contains(charts, title) {
			t.Errorf("charts %q lack %q", charts, title)
		}
	}
	summary := ask[string](v, `document.querySelector('section[aria-label^="checks of"] > details > summary').innerText`)
	if want := "3 checks are part of the contract of controllers that are not under test"; summary != want {
		t.Errorf("the folded checks have the summary %q; want %q", summary, want)
	}
	v.screenshot("any-kind-light")
	v.dark()
	v.screenshot("any-kind-dark")
	ask[bool](v, `(document.querySelector('.charts').scrollIntoView(), true)`)
	v.screenshot("any-kind-charts")
	ask[bool](v, `(location.hash = '#check-burst-limit', true)`)
	v.await(`document.activeElement.id === 'check-burst-limit' && document.activeElement.closest('section > details').open`)
	v.screenshot("any-kind-checks")
	v.clean()
}

// TestPageFilters filters the timeline's events by words, kind, time and violation. The tracks must
// show the same events as the list.
func TestPageFilters(t *testing.T) {
	v := open(t, 1280, 1600, laggingRun(t, 40))
	shown := func() int {
		return ask[int](v, `gauntlet.timelines[0].shown.length`)
	}
	set := func(label, value string) {
		ask[bool](v, fmt.Sprintf(`(e => { e.value = %q; return e.dispatchEvent(new Event('input')); })(document.querySelector('[aria-label=%q]'))`, value, label))
	}
	all := shown()
	if want := 41*7 + 6; all != want { // each pod has a request, three versions and three deliveries
		t.Errorf("%d events; want %d", all, want)
	}
	set("filter by object or words", "web-00007 modified")
	if got := shown(); got != 4 {
		t.Errorf("%d events of web-00007 that are modifications; want 4", got)
	}
	if got := ask[int](v, `gauntlet.timelines[0].tracksShown.length`); got != 1 {
		t.Errorf("%d tracks; want 1", got)
	}
	set("filter by object or words", "")
	set("from second", "0.1")
	set("to second", "0.1005")
	if got := shown(); got >= 10 || got == 0 {
		t.Errorf("%d events in half a millisecond", got)
	}
	set("from second", "")
	set("to second", "")
	ask[bool](v, `(gauntlet.timelines[0].kinds.get('commit').click(), true)`)
	if got := shown(); got != all-41*3-1 {
		t.Errorf("%d events without commits; want %d", got, all-41*3-1)
	}
	// A link resets the filter, so that the event to which the link points is visible.
	ask[bool](v, `(location.hash = '#s8', true)`)
	v.await(`document.querySelector('.selected-mark strong').innerText === 'ADDED replicasets.apps web'`)
	if got := shown(); got != all {
		t.Errorf("%d events after following a link; want %d", got, all)
	}
	v.clean()
}

// TestPageByKeyboard uses the keyboard to zoom the tracks and to move from event to event.
func TestPageByKeyboard(t *testing.T) {
	v := open(t, 1280, 1600, laggingRun(t, 40))
	before := ask[float64](v, `gauntlet.axis.to - gauntlet.axis.from`)
	v.do(chromedp.Focus(chromedp.CSS(".tracks")), chromedp.KeyEvent("+"))
	if after := ask[float64](v, `gauntlet.axis.to - gauntlet.axis.from`); after > before/2+1 {
		t.Errorf("+ zooms from %g to %g µs", before, after)
	}
	v.do(chromedp.KeyEvent("0"))
	if after := ask[float64](v, `gauntlet.axis.to - gauntlet.axis.from`); after != before {
		t.Errorf("0 shows %g µs; want %g", after, before)
	}
	v.do(chromedp.Focus(chromedp.CSS(".events")), chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowDown))
	if got := ask[int](v, `gauntlet.timelines[0].selected`); got != 1 {
		t.Errorf("two steps down choose event %d; want 1", got)
	}
	v.clean()
}

// TestPageLooks opens the page with the dark theme and on a narrow screen. No element may
// be wider than the screen.
func TestPageLooks(t *testing.T) {
	v := open(t, 1280, 1600, laggingRun(t, 40))
	light := ask[string](v, `getComputedStyle(document.body).backgroundColor`)
	v.dark()
	v.await(fmt.Sprintf(`getComputedStyle(document.body).backgroundColor !== %q`, light))
	v.screenshot("failed-dark")
	v.do(chromedp.EmulateViewport(390, 844))
	v.await(`innerWidth === 390 && gauntlet.timelines[0].width < 390`)
	if wide := ask[int](v, `document.documentElement.scrollWidth`); wide > 390 {
		t.Errorf("the page is %d pixels wide on a screen of 390", wide)
	}
	v.screenshot("failed-phone")
	ask[bool](v, `(document.querySelector('.timeline').scrollIntoView(), true)`)
	v.screenshot("failed-phone-timeline")
	v.clean()
}

// TestPageOfManyEvents checks that only visible events have HTML elements. The time to repaint the
// page must grow at most in proportion to the number of events.
func TestPageOfManyEvents(t *testing.T) {
	v := open(t, 1280, 1600, laggingRun(t, 7000))
	events := ask[int](v, `gauntlet.timelines[0].count`)
	if events < 49000 {
		t.Errorf("%d events; want some 50000", events)
	}
	if rows := ask[int](v, `document.querySelectorAll('.events .row').length`); rows > 100 {
		t.Errorf("%d rows for events exist; want only the visible ones", rows)
	}
	whole := ask[float64](v, `Math.min(...Array.from({length: 5}, () => gauntlet.paint()))`)
	zoomed := ask[float64](v, `(gauntlet.axis.zoom(0.01), Math.min(...Array.from({length: 5}, () => gauntlet.paint())))`)
	filtered := ask[float64](v, `(() => { const b = gauntlet.timelines[0], t = performance.now(); b.search.value = 'web-004'; b.filter(); return performance.now() - t; })()`)
	few := ask[float64](open(t, 1280, 1600, laggingRun(t, 700)), `Math.min(...Array.from({length: 5}, () => gauntlet.paint()))`)
	// A page with ten times as many events may need ten times as long. The factor 3 allows for
	// noise.
	if ratio := whole / max(few, 0.5); ratio > 30 {
		t.Errorf("ten times the events take %.1f times as long to paint (%.1f ms to %.1f ms); want 30 at most", ratio, whole, few)
	}
	t.Logf("%d events: %.1f ms to paint the whole run, %.1f ms zoomed in, %.1f ms to filter", events, whole, zoomed, filtered)
	v.clean()
}

// TestPageOfALongRun checks the page of a run from whose timeline records are omitted. A note must
// precede the timeline, and all cited records must have marks.
func TestPageOfALongRun(t *testing.T) {
	v := open(t, 1280, 1600, laggingRun(t, 26000))
	v.screenshot("long-light")
	if said := ask[string](v, `document.querySelector('.omitted').innerText`); !strings.Contains(said, "208020 records") {
		t.Errorf("the note is %q", said)
	}
	if !ask[bool](v, `document.querySelector('.omitted').getBoundingClientRect().bottom <= document.querySelector('.tracks').getBoundingClientRect().top`) {
		t.Error("the note is after the tracks")
	}
	if got := ask[int](v, `gauntlet.timelines[0].isCited.reduce((n, cited) => n + cited, 0)`); got != 2 {
		t.Errorf("%d marks are evidence; want 2, one of them long before the rest", got)
	}
	if undrawn := ask[[][]float64](v, `gauntlet.timelines[0].notDisplayed`); len(undrawn) != 1 || undrawn[0][0] != 0 || undrawn[0][1] == 0 {
		t.Errorf("shaded as not displayed: %v; want the start", undrawn)
	}
	ask[bool](v, `(location.hash = '#s100', true)`)
	v.await(`document.querySelector('.selected-mark').innerText.includes('Record 100 has no mark of its own')`)
	v.screenshot("long-followed")
	v.clean()
}

// TestPageOfManyRuns checks that the page of many runs has an overview with a trend, and no
// timeline.
func TestPageOfManyRuns(t *testing.T) {
	var runs []Run
	for day := range 5 {
		for i, r := range samples["many"] {
			r.Started = time.Date(2026, 1, 2+day, 3, i, 0, 0, time.UTC)
			runs = append(runs, r)
		}
	}
	v := open(t, 1280, 1600, runs...)
	v.screenshot("many-light")
	if got := ask[int](v, `document.querySelectorAll('.bar').length`); got != 5 {
		t.Errorf("%d days; want 5", got)
	}
	if got := ask[int](v, `document.querySelectorAll('.timeline').length`); got != 0 {
		t.Errorf("%d timelines on a page of many runs", got)
	}
	v.clean()
}

// TestPageHasSmallest checks that the page of a run shows the scenario that gauntlet shrink
// found.
func TestPageHasSmallest(t *testing.T) {
	r := laggingRun(t, 3)
	for _, want := range []bool{false, true} {
		if want {
			if err := os.Mkdir(filepath.Join(r.Directory, "shrink"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(r.Directory, "shrink", "smallest.yaml"), []byte("name: the-smallest\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := WriteFiles(r.Directory, r); err != nil {
			t.Fatal(err)
		}
		page, err := os.ReadFile(filepath.Join(r.Directory, PageName))
		if err != nil || strings.Contains(string(page), "name: the-smallest") != want || strings.Contains(string(page), "no smallest") {
			t.Errorf("error %v; want the smallest scenario on the page: %t", err, want)
		}
	}
}

// TestPageEscapes checks that the page escapes HTML in texts that come from the controllers under
// test.
func TestPageEscapes(t *testing.T) {
	r := laggingRun(t, 3)
	r.Scenario, r.Reason = "<script>alert(1)</script>", "<b>bold</b>"
	r.Results[0].Evidence[0].Summary = "</script><img src=x>"
	var b bytes.Buffer
	if err := HTML(&b, []Run{r}, ReadDetail(&r), r.Directory); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"<script>alert", "<b>bold", "<img", "done </script>"} {
		if strings.Contains(b.String(), bad) {
			t.Errorf("the page contains %q", bad)
		}
	}
}

// TestPageWithoutHistory checks that a run without a history still has a page, which shows the
// files that exist.
func TestPageWithoutHistory(t *testing.T) {
	r := laggingRun(t, 3)
	if err := os.Remove(filepath.Join(r.Directory, "history.jsonl")); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := HTML(&b, []Run{r}, ReadDetail(&r), r.Directory); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"one create too many", "no timeline: the file is not in the run directory", "name: lagging", "0 of 3 pods ready", "logs/subject-0.log"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if strings.Contains(b.String(), "<script") {
		t.Error("a script on a page without a timeline")
	}
}

// TestPageOfCampaign checks the page of 50 runs. Most of the runs passed, so that their
// directories were deleted. Failures must come first, every run must be counted, and no link may
// lead to a deleted directory.
func TestPageOfCampaign(t *testing.T) {
	var all []Run
	for i := range 23 {
		for _, subject := range []string{"ours", "upstream"} {
			all = append(all, notKept([]string{"burst", "rollout", "endpoints", "pod-churn"}[i%4], subject))
		}
	}
	known := run("stuck-scaling", check.KnownUpstream, "known upstream issue", result("rollout-complete", check.KnownUpstream, 4, "ReplicaSets have 3 pods of 5"))
	known.Subject = "upstream"
	all = append(all, failed("burst"), known, failed("rollout"), run("api-errors", check.Unknown, "no injected fault had an effect (1 injected)"))
	for i := range all {
		all[i].Started = time.Date(2026, 1, 2, 1, 17+5*i, 0, 0, time.UTC)
		all[i].Duration = time.Duration(5+i%9) * time.Second
	}
	v := open(t, 1200, 1400, all...)
	v.screenshot("campaign-1200-light")
	said := ask[string](v, `document.querySelector('[aria-label=overview]').innerText`)
	for _, want := range []string{
		"started from 2026-01-02 01:17 to 2026-01-02 05:22 UTC", "exec:bin/mutant\t2\t2\t", "ours\t24\t\t1\t\t23\t", "upstream\t24\t\t\t1\t23\t",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("the page of a campaign lacks %q:\n%s", want, said)
		}
	}
	if ask[bool](v, `document.querySelector('[aria-label="runs that passed"]') !== null || [...document.links].some(a => !a.getAttribute('href').includes('seed42') && !a.getAttribute('href').startsWith('#run'))`) {
		t.Error("the page of a campaign links to deleted runs")
	}
	if first := ask[string](v, `document.querySelector('[aria-label=overview] h3').innerText`); first != "Failures" {
		t.Errorf("the first heading is %q; want Failures", first)
	}
	if folded := ask[string](v, `document.querySelector('[aria-label=overview] details:not([open]) summary').innerText`); !strings.HasSuffix(folded, " in which every run passed") {
		t.Errorf("folded away is %q; want the scenarios in which every run passed", folded)
	}
	v.dark()
	v.screenshot("campaign-1200-dark")
	narrow := open(t, 500, 1400, all...)
	narrow.screenshot("campaign-500-light")
	if wide := ask[int](narrow, `document.documentElement.scrollWidth - window.innerWidth`); wide > 0 {
		t.Errorf("on 500 pixels the page is %d too wide", wide)
	}
	v.clean()
}

// TestCountByDay checks that runs are counted by day (UTC). A run that is neither fail nor
// unknown counts as passed.
func TestCountByDay(t *testing.T) {
	at := func(day int) time.Time { return time.Date(2026, 1, day, 23, 0, 0, 0, time.UTC) }
	got := countByDay([]Run{{Started: at(3), Verdict: check.Fail}, {Started: at(2), Verdict: check.Pass}, {Started: at(3), Verdict: check.NotExercised}, {Verdict: check.Fail}})
	if len(got) != 2 || got[0] != (dayCounts{Day: "2026-01-02", Runs: 1, Pass: 1}) || got[1] != (dayCounts{Day: "2026-01-03", Runs: 2, Fail: 1, Pass: 1}) {
		t.Errorf("days %+v", got)
	}
	if shares := got[1].Shares(); len(shares) != 2 || shares[0].Percent != "50.0" {
		t.Errorf("shares %+v", shares)
	}
}
