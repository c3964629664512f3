package reports

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/check"
)

// overviewData is what the page of several runs begins with.
type overviewData struct {
	When     string          // they were begun, empty if that is not known
	Failures []pageFailure   // worst first
	Days   []dayCounts         // oldest first
	Verdicts []check.Verdict // the columns of the tallies
	Subjects []verdictCounts         // of each subject, whatever the scenario; the worst first
	NotClean    []verdictCounts         // of each scenario on each subject that not always passed; the worst first
	Clean    []verdictCounts         // of the others
}

type pageFailure struct {
	Verdict                                    check.Verdict
	Subject, Scenario, Check, Times, Reproduce string
	Reason, Guarantee, Page                    string
}

// dayCounts is the runs of one day of UTC.
type dayCounts struct {
	Day                              string
	Runs, Fail, Unknown, Known, Pass int
}

// Shares are what each verdict has of the runs.
func (n dayCounts) Shares() []share {
	var all []share
	for _, s := range []struct {
		verdict check.Verdict
		n       int
	}{{check.Fail, n.Fail}, {check.Unknown, n.Unknown}, {check.KnownUpstream, n.Known}, {check.Pass, n.Pass}} {
		if s.n > 0 {
			all = append(all, share{s.verdict, fmt.Sprintf("%.1f", 100*float64(s.n)/float64(n.Runs))})
		}
	}
	return all
}

type share struct {
	Verdict check.Verdict
	Percent string
}

// verdictCounts is all runs of a scenario on a subject, or of all scenarios on it.
type verdictCounts struct {
	Scenario, Subject string
	Runs              int
	Counts            []verdictCount
	Seconds, Longest  string // the median and the longest
}

// clean reports whether every run passed.
func (t verdictCounts) clean() bool {
	return !slices.ContainsFunc(t.Counts, func(c verdictCount) bool { return c.N > 0 && !needsNoExplanation(c.Verdict) })
}

// verdictCountsTable is tallies as the page has them.
type verdictCountsTable struct {
	Verdicts  []check.Verdict
	Rows      []verdictCounts
	Scenarios bool // there is a column for them
}

type verdictCount struct {
	Verdict check.Verdict
	N       int
}

// overview sums up several runs for a page in a directory.
func overview(runs []Run, dir string) overviewData {
	o := overviewData{Days: countByDay(runs)}
	for _, f := range groupFailures(runs) {
		broken, _ := check.Find(f.check)
		o.Failures = append(o.Failures, pageFailure{
			Guarantee: broken.Guarantee,
			Verdict:   f.verdict, Subject: f.subject, Scenario: f.scenarioText(), Check: f.check, Times: countRuns(f.runs),
			Reproduce: f.smallest.Reproduce, Reason: f.reason, Page: pageOf(f.smallest, dir),
		})
	}
	for _, verdict := range worstFirst {
		if slices.ContainsFunc(runs, func(r Run) bool { return r.Verdict == verdict }) {
			o.Verdicts = append(o.Verdicts, verdict)
		}
	}
	o.Subjects = countVerdicts(runs, o.Verdicts, func(*Run) string { return "" })
	for _, t := range countVerdicts(runs, o.Verdicts, func(r *Run) string { return r.Scenario }) {
		if t.clean() {
			o.Clean = append(o.Clean, t)
		} else {
			o.NotClean = append(o.NotClean, t)
		}
	}
	o.When = when(runs)
	return o
}

// when says when runs were begun.
func when(runs []Run) string {
	var first, last time.Time
	for _, run := range runs {
		if begun := run.Started.UTC(); !run.Started.IsZero() {
			if first.IsZero() || begun.Before(first) {
				first = begun
			}
			if begun.After(last) {
				last = begun
			}
		}
	}
	const minute = "2006-01-02 15:04"
	switch {
	case first.IsZero():
		return ""
	case first.Format(minute) == last.Format(minute):
		return "begun at " + first.Format(minute) + " UTC"
	default:
		return "begun from " + first.Format(minute) + " to " + last.Format(minute) + " UTC"
	}
}

// countByDay counts the runs by the day on which they began. Runs of which that is
// not known are left out.
func countByDay(runs []Run) []dayCounts {
	var all []dayCounts
	for _, run := range runs {
		if run.Started.IsZero() {
			continue
		}
		day := run.Started.UTC().Format(time.DateOnly)
		i := slices.IndexFunc(all, func(n dayCounts) bool { return n.Day == day })
		if i < 0 {
			i = len(all)
			all = append(all, dayCounts{Day: day})
		}
		n := &all[i]
		n.Runs++
		switch run.Verdict {
		case check.Fail:
			n.Fail++
		case check.Unknown:
			n.Unknown++
		case check.KnownUpstream:
			n.Known++
		default:
			n.Pass++
		}
	}
	slices.SortFunc(all, func(a, b dayCounts) int { return cmp.Compare(a.Day, b.Day) })
	return all
}

// countVerdicts counts the verdicts of each scenario, by the name it is given, on each
// subject.
func countVerdicts(runs []Run, verdicts []check.Verdict, scenario func(*Run) string) []verdictCounts {
	var all []verdictCounts
	var times [][]time.Duration
	for _, run := range sorted(runs) {
		i := slices.IndexFunc(all, func(t verdictCounts) bool { return t.Scenario == scenario(&run) && t.Subject == run.Subject })
		if i < 0 {
			i = len(all)
			all, times = append(all, verdictCounts{Scenario: scenario(&run), Subject: run.Subject}), append(times, nil)
			for _, verdict := range verdicts {
				all[i].Counts = append(all[i].Counts, verdictCount{Verdict: verdict})
			}
		}
		all[i].Runs++
		all[i].Counts[slices.Index(verdicts, run.Verdict)].N++
		times[i] = append(times[i], run.Duration)
	}
	for i := range all {
		slices.Sort(times[i])
		all[i].Seconds = fmt.Sprintf("%.1f", times[i][len(times[i])/2].Seconds())
		all[i].Longest = fmt.Sprintf("%.1f", times[i][len(times[i])-1].Seconds())
	}
	return all
}
