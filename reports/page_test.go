package reports

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/kube-gauntlet/gauntlet/harness/check"
)

// clean demands that the page said nothing on its console and loaded nothing.
func (v *visitor) clean() {
	v.t.Helper()
	if loaded := ask[[]string](v, `performance.getEntriesByType('resource').map(r => r.name)`); len(loaded) > 0 {
		v.t.Errorf("the page loaded %v", loaded)
	}
	if said := v.consoleMessages(); len(said) > 0 {
		v.t.Errorf("the browser's console:\n%s", strings.Join(said, "\n"))
	}
}

// TestPageFromViolationToEvents opens the page of a failed run, follows a piece
// of evidence to its event, and the event back to the evidence.
func TestPageFromViolationToEvents(t *testing.T) {
	v := open(t, 1280, 1600, laggingRun(t, 40))
	v.screenshot("failed-light")
	if got := ask[string](v, `document.querySelector('h1').innerText`); got != "gauntlet: fail" {
		t.Errorf("heading %q", got)
	}
	v.do(chromedp.Click(chromedp.CSS("#v-expectations-1 a")))
	v.await(`document.querySelector('.found-mark').innerText.includes('Evidence of expectations 1')`)
	if got := ask[string](v, `document.querySelector('.found-mark strong').innerText`); got != "create pods web-00000" {
		t.Errorf("the evidence leads to %q", got)
	}
	if !ask[bool](v, `document.querySelector('.row.chosen').className.includes('cited')`) {
		t.Error("the chosen event is not marked as evidence")
	}
	v.screenshot("failed-followed")
	v.do(chromedp.Click(chromedp.CSS(".found-mark a")))
	v.await(`document.activeElement.id === 'v-expectations-1'`)
	v.clean()
}

// TestPageFilters filters by words, kind, time and evidence, and demands that the
// lanes follow.
func TestPageFilters(t *testing.T) {
	v := open(t, 1280, 1600, laggingRun(t, 40))
	shown := func() int {
		return ask[int](v, `gauntlet.boards[0].shown.length`)
	}
	set := func(label, value string) {
		ask[bool](v, fmt.Sprintf(`(e => { e.value = %q; return e.dispatchEvent(new Event('input')); })(document.querySelector('[aria-label=%q]'))`, value, label))
	}
	all := shown()
	if want := 41*7 + 6; all != want { // a request, three versions and three deliveries a pod
		t.Errorf("%d events; want %d", all, want)
	}
	set("filter by object or words", "web-00007 modified")
	if got := shown(); got != 4 {
		t.Errorf("%d events of web-00007 that are modifications; want 4", got)
	}
	if got := ask[int](v, `gauntlet.boards[0].rowsShown.length`); got != 1 {
		t.Errorf("%d lanes; want 1", got)
	}
	set("filter by object or words", "")
	set("from second", "0.1")
	set("to second", "0.1005")
	if got := shown(); got >= 10 || got == 0 {
		t.Errorf("%d events in half a millisecond", got)
	}
	set("from second", "")
	set("to second", "")
	ask[bool](v, `(gauntlet.boards[0].kinds.get('truth').click(), true)`)
	if got := shown(); got != all-41*3-1 {
		t.Errorf("%d events without the truth; want %d", got, all-41*3-1)
	}
	// What a link leads to is shown, whatever the filter.
	ask[bool](v, `(location.hash = '#s8', true)`)
	v.await(`document.querySelector('.found-mark strong').innerText === 'ADDED replicasets.apps web'`)
	if got := shown(); got != all {
		t.Errorf("%d events after following a link; want %d", got, all)
	}
	v.clean()
}

// TestPageByKeyboard zooms the lanes and walks through the events.
func TestPageByKeyboard(t *testing.T) {
	v := open(t, 1280, 1600, laggingRun(t, 40))
	before := ask[float64](v, `gauntlet.axis.to - gauntlet.axis.from`)
	v.do(chromedp.Focus(chromedp.CSS(".lanes")), chromedp.KeyEvent("+"))
	if after := ask[float64](v, `gauntlet.axis.to - gauntlet.axis.from`); after > before/2+1 {
		t.Errorf("+ zooms from %g to %g µs", before, after)
	}
	v.do(chromedp.KeyEvent("0"))
	if after := ask[float64](v, `gauntlet.axis.to - gauntlet.axis.from`); after != before {
		t.Errorf("0 shows %g µs; want %g", after, before)
	}
	v.do(chromedp.Focus(chromedp.CSS(".events")), chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowDown))
	if got := ask[int](v, `gauntlet.boards[0].chosen`); got != 1 {
		t.Errorf("two steps down choose event %d; want 1", got)
	}
	v.clean()
}

// TestPageLooks draws the page dark and on a phone, where nothing may be wider
// than the screen.
func TestPageLooks(t *testing.T) {
	v := open(t, 1280, 1600, laggingRun(t, 40))
	light := ask[string](v, `getComputedStyle(document.body).backgroundColor`)
	v.dark()
	v.await(fmt.Sprintf(`getComputedStyle(document.body).backgroundColor !== %q`, light))
	v.screenshot("failed-dark")
	v.do(chromedp.EmulateViewport(390, 844))
	v.await(`innerWidth === 390 && gauntlet.boards[0].width < 390`)
	if wide := ask[int](v, `document.documentElement.scrollWidth`); wide > 390 {
		t.Errorf("the page is %d pixels wide on a screen of 390", wide)
	}
	v.screenshot("failed-phone")
	ask[bool](v, `(document.querySelector('.board').scrollIntoView(), true)`)
	v.screenshot("failed-phone-timeline")
	v.clean()
}

// TestPageOfManyEvents demands that no more of the events is made than is seen,
// that a repaint does not take more than its share, and says what it takes.
func TestPageOfManyEvents(t *testing.T) {
	v := open(t, 1280, 1600, laggingRun(t, 7000))
	events := ask[int](v, `gauntlet.boards[0].count`)
	if events < 49000 {
		t.Errorf("%d events; want some 50000", events)
	}
	if rows := ask[int](v, `document.querySelectorAll('.events .row').length`); rows > 100 {
		t.Errorf("%d rows are made, and few can be seen", rows)
	}
	whole := ask[float64](v, `Math.min(...Array.from({length: 5}, () => gauntlet.paint()))`)
	zoomed := ask[float64](v, `(gauntlet.axis.zoom(0.01), Math.min(...Array.from({length: 5}, () => gauntlet.paint())))`)
	filtered := ask[float64](v, `(() => { const b = gauntlet.boards[0], t = performance.now(); b.search.value = 'web-004'; b.filter(); return performance.now() - t; })()`)
	few := ask[float64](open(t, 1280, 1600, laggingRun(t, 700)), `Math.min(...Array.from({length: 5}, () => gauntlet.paint()))`)
	// Ten times the events take ten times as long at the most, three for the machine.
	if ratio := whole / max(few, 0.5); ratio > 30 {
		t.Errorf("ten times the events take %.1f times as long to paint (%.1f ms to %.1f ms); want 30 at most", ratio, whole, few)
	}
	t.Logf("%d events: %.1f ms to paint the whole run, %.1f ms zoomed in, %.1f ms to filter", events, whole, zoomed, filtered)
	v.clean()
}

// TestPageOfALongRun demands that a page that leaves something out says so before it
// shows the rest, and shows what is cited all the same.
func TestPageOfALongRun(t *testing.T) {
	v := open(t, 1280, 1600, laggingRun(t, 26000))
	v.screenshot("long-light")
	if said := ask[string](v, `document.querySelector('.cut').innerText`); !strings.Contains(said, "of this long history of 208020 records") {
		t.Errorf("it says %q", said)
	}
	if !ask[bool](v, `document.querySelector('.cut').getBoundingClientRect().bottom <= document.querySelector('.lanes').getBoundingClientRect().top`) {
		t.Error("it says so behind what it shows")
	}
	if got := ask[int](v, `gauntlet.boards[0].isCited.reduce((n, cited) => n + cited, 0)`); got != 2 {
		t.Errorf("%d marks are evidence; want 2, one of them long before the rest", got)
	}
	if undrawn := ask[[][]float64](v, `gauntlet.boards[0].undrawn`); len(undrawn) != 1 || undrawn[0][0] != 0 || undrawn[0][1] == 0 {
		t.Errorf("shaded as not drawn: %v; want the beginning", undrawn)
	}
	ask[bool](v, `(location.hash = '#s100', true)`)
	v.await(`document.querySelector('.found-mark').innerText.includes('Record 100 has no mark of its own')`)
	v.screenshot("long-followed")
	v.clean()
}

// TestPageOfManyRuns demands an overview with a trend, and no timeline.
func TestPageOfManyRuns(t *testing.T) {
	var runs []Run
	for night := range 5 {
		for i, r := range samples["many"] {
			r.Started = time.Date(2026, 1, 2+night, 3, i, 0, 0, time.UTC)
			runs = append(runs, r)
		}
	}
	v := open(t, 1280, 1600, runs...)
	v.screenshot("many-light")
	if got := ask[int](v, `document.querySelectorAll('.bar').length`); got != 5 {
		t.Errorf("%d nights; want 5", got)
	}
	if got := ask[int](v, `document.querySelectorAll('.board').length`); got != 0 {
		t.Errorf("%d timelines on a page of many runs", got)
	}
	v.clean()
}

// TestPageHasSmallest: what gauntlet shrink has found is on the page of the run.
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

// TestPageEscapes: what a subject says is text, not markup.
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

// TestPageWithoutHistory: a page is made of whatever is there.
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

// TestPageOfNight: a night of 50 runs of which most passed and were not kept: what was
// caught comes first, every run is counted, and nothing leads to what is gone.
func TestPageOfNight(t *testing.T) {
	var all []Run
	for i := range 23 {
		for _, subject := range []string{"ours", "upstream"} {
			all = append(all, notKept([]string{"burst", "rollout", "endpoints", "pod-churn"}[i%4], subject))
		}
	}
	weak := run("stuck-scaling", check.KnownUpstream, "as upstream is known to", result("rollout-complete", check.KnownUpstream, 4, "ReplicaSets have 3 pods of 5"))
	weak.Subject = "upstream"
	all = append(all, failed("burst"), weak, failed("rollout"), run("api-errors", check.Unknown, "no fault fired"))
	for i := range all {
		all[i].Started = time.Date(2026, 1, 2, 1, 17+5*i, 0, 0, time.UTC)
		all[i].Duration = time.Duration(5+i%9) * time.Second
	}
	v := open(t, 1200, 1400, all...)
	v.screenshot("night-1200-light")
	said := ask[string](v, `document.querySelector('[aria-label=overview]').innerText`)
	for _, want := range []string{
		"begun from 2026-01-02 01:17 to 2026-01-02 05:22 UTC", "exec:bin/mutant\t2\t2\t", "ours\t24\t\t1\t\t23\t", "upstream\t24\t\t\t1\t23\t",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("the page of a night lacks %q:\n%s", want, said)
		}
	}
	if ask[bool](v, `document.querySelector('[aria-label="runs that passed"]') !== null || [...document.links].some(a => !a.getAttribute('href').includes('seed42'))`) {
		t.Error("the page of a night leads to runs that are gone")
	}
	if first := ask[string](v, `document.querySelector('[aria-label=overview] h3').innerText`); first != "What went wrong" {
		t.Errorf("first comes %q; want what went wrong", first)
	}
	if folded := ask[string](v, `document.querySelector('[aria-label=overview] details:not([open]) summary').innerText`); !strings.HasSuffix(folded, " in which every run passed") {
		t.Errorf("folded away is %q; want the scenarios in which every run passed", folded)
	}
	v.dark()
	v.screenshot("night-1200-dark")
	narrow := open(t, 500, 1400, all...)
	narrow.screenshot("night-500-light")
	if wide := ask[int](narrow, `document.documentElement.scrollWidth - window.innerWidth`); wide > 0 {
		t.Errorf("on 500 pixels the page is %d too wide", wide)
	}
	v.clean()
}

// TestNights: a day of UTC is a night, and runs that did not fail or remain
// unknown passed.
func TestNights(t *testing.T) {
	at := func(day int) time.Time { return time.Date(2026, 1, day, 23, 0, 0, 0, time.UTC) }
	got := countByDay([]Run{{Started: at(3), Verdict: check.Fail}, {Started: at(2), Verdict: check.Pass}, {Started: at(3), Verdict: check.NotExercised}, {Verdict: check.Fail}})
	if len(got) != 2 || got[0] != (dayCounts{Day: "2026-01-02", Runs: 1, Pass: 1}) || got[1] != (dayCounts{Day: "2026-01-03", Runs: 2, Fail: 1, Pass: 1}) {
		t.Errorf("nights %+v", got)
	}
	if shares := got[1].Shares(); len(shares) != 2 || shares[0].Percent != "50.0" {
		t.Errorf("shares %+v", shares)
	}
}
