package reports

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/compare"
)

// comparison returns a comparison of two pairs of runs. The second pair has more differences than
// the first.
func comparison() Comparison {
	accepted := compare.Difference{Aspect: compare.MilestoneOrder, Object: "replicasets.apps web-<1234>", What: "sizes", Subject: "0, 5", Base: "0, 4, 5", Classification: compare.Accepted, Reason: "the guarantees allow both orders"}
	base := on("upstream", passed("burst"))
	return Comparison{
		Scenario: "burst", Subject: "ours", Base: "upstream", Ratios: ratios,
		Pairs: []Pair{
			{Subject: passed("burst"), Base: base, Differences: []compare.Difference{accepted}},
			{Subject: passed("burst"), Base: base, Diff: "-3\n+4", Differences: []compare.Difference{
				accepted,
				{Aspect: compare.EndStates, Object: "deployments.apps web", What: "status.replicas", Subject: "4", Base: "3", Classification: compare.Undeclared},
				{Aspect: compare.Verdicts, Object: "no-writes-when-settled", What: "verdict", Subject: "fail", Base: "fail", Classification: compare.BothWrong, Reason: "found 1 violation; first: a write 3s after the subject settled"},
				{Aspect: compare.Verdicts, Object: "converged", What: "verdict", Subject: "pass", Base: "fail", Classification: compare.Declared, Reason: "a known upstream issue that ours does not have"},
				{Aspect: compare.EndStates, Object: "replicasets.apps web-<1234>", What: "spec.replicas", Subject: "4", Base: "3", Classification: compare.Declared, Reason: "a known upstream issue that ours does not have"},
				{Aspect: compare.EndStates, Object: "replicasets.apps web-<1234>", What: "status.replicas", Subject: "4", Base: "3", Classification: compare.Declared, Reason: "a known upstream issue that ours does not have"},
			}},
		},
	}
}

// abortedComparison returns a comparison in which the base run did not complete the second step.
func abortedComparison() Comparison {
	c := comparison()
	c.Scenario, c.Pairs, c.Ratios = "steady-9", c.Pairs[:1], nil
	c.Pairs[0].CostNotComparable = true
	c.Pairs[0].Differences = []compare.Difference{
		{
			Aspect: compare.Workloads, Object: "step 1", What: "scale Deployment web to 4, then await Deployment web scaled within 30s",
			Subject: "done", Base: "aborted: Deployment web scaled: not met in time (30s)",
			Classification: compare.NotCompared, Reason: "known upstream issue stuck-scaling; the steps after it are not compared",
		},
		{Aspect: compare.EndStates, Object: "deployments.apps web", What: "spec.replicas", Subject: "9", Base: "4", Classification: compare.NotCompared, Reason: "the steps differ"},
		{Aspect: compare.EndStates, Object: "deployments.apps web", What: "status.replicas", Subject: "9", Base: "4", Classification: compare.NotCompared, Reason: "the steps differ"},
	}
	return c
}

func TestCompared(t *testing.T) {
	same := comparison()
	same.Scenario, same.Pairs, same.Ratios = "rollout", same.Pairs[:1], nil
	for name, render := range map[string]func(io.Writer, []Comparison) error{
		"compared.txt": Compared, "compared.md": ComparedMarkdown, "compared.json": ComparedJSON, "compared-github.txt": ComparedAnnotations,
	} {
		var got bytes.Buffer
		if err := render(&got, []Comparison{comparison(), same, abortedComparison()}); err != nil {
			t.Fatal(err)
		}
		golden(t, filepath.Join("testdata", name), got.String())
		if err := render(failingWriter{errors.New("disk full")}, []Comparison{comparison()}); err == nil {
			t.Errorf("%s: no error though the output is lost", name)
		}
	}
}

// TestVerdictOfComparison checks that an undeclared difference gives the verdict fail. A
// comparison without pairs must have the verdict unknown.
func TestVerdictOfComparison(t *testing.T) {
	whole := comparison()
	for want, pairs := range map[check.Verdict][]Pair{check.Fail: whole.Pairs, check.Pass: whole.Pairs[:1], check.Unknown: nil} {
		c := whole
		c.Pairs = pairs
		if got := c.Verdict(); got != want {
			t.Errorf("%d pairs: %s, want %s", len(pairs), got, want)
		}
	}
}

// TestVerdictOfPair checks that the page of a pair shows fail for an undeclared difference,
// although both runs passed.
func TestVerdictOfPair(t *testing.T) {
	for i, want := range []string{"gauntlet: <span class=\"pass\">", "gauntlet: <span class=\"fail\">"} {
		var page bytes.Buffer
		c := comparison()
		if err := PairHTML(&page, &c, i, "out"); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(page.String(), want) {
			t.Errorf("pair %d: no %s", i, want)
		}
	}
}

// TestPageOfPair checks that the page of a pair has two timelines. A step must have the same
// position in each timeline, although one run reached the step later.
func TestPageOfPair(t *testing.T) {
	c := comparison()
	pair := &c.Pairs[1]
	pair.Subject, pair.Base = laggingRun(t, 40), laggingRun(t, 400)
	pair.Subject.Seed, pair.Base.Seed = 43, 43
	pair.Base.Subject = "upstream"
	dir := t.TempDir()
	if err := WriteComparisons(dir, []Comparison{c}); err != nil {
		t.Fatal(err)
	}
	v := visit(t, filepath.Join(dir, ComparedPageName), 1280, 1200)
	v.screenshot("compared-light")
	v.do(chromedp.Navigate("file://" + ask[string](v, `document.querySelector('td a').href.slice(7)`)))
	if got := ask[int](v, `gauntlet.timelines.length`); got != 2 {
		t.Fatalf("%d timelines; want 2", got)
	}
	if got := ask[string](v, `document.querySelector('[aria-label=cost]').innerText`); !strings.Contains(got, "patch pods") {
		t.Errorf("the page of a pair says of the cost:\n%s", got)
	}
	v.screenshot("pair-light")
	if got := ask[[]string](v, `[...document.querySelectorAll('[id]')].map(e => e.id).filter((id, i, all) => all.indexOf(id) !== i)`); len(got) > 0 {
		t.Errorf("duplicate IDs %q", got)
	}
	ends := `gauntlet.timelines.map(b => b.phases.find(p => p.name === 'settle').x)`
	if x := ask[[]float64](v, ends); x[0] != x[1] {
		t.Errorf("settling begins at %v; want one place", x)
	}
	v.do(chromedp.Click(chromedp.CSS("#t1-expectations-1 a")))
	v.await(`document.querySelectorAll('.selected-mark')[1].innerText.includes('Evidence of expectations 1')`)
	v.do(chromedp.Click(chromedp.CSS("section:nth-of-type(1) ~ .timeline .selected-mark a[href='#t1-expectations-1']")))
	v.await(`document.activeElement.id === 't1-expectations-1'`)
	v.clean()
}

// TestNoPairs checks that a report about a comparison without pairs does not say that the subjects
// are equal.
func TestNoPairs(t *testing.T) {
	none := Comparison{Scenario: "burst", Subject: "ours", Base: "upstream"}
	if got, want := none.countsText(), "ours and upstream, pairs: 0, nothing was compared"; got != want {
		t.Errorf("counts %q; want %q", got, want)
	}
	if got := none.Verdict(); got != check.Unknown {
		t.Errorf("verdict %s; want unknown", got)
	}
}
