package reports

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/check"
)

// overviewData is shown first on a page of several runs. It has the failure groups, and the
// numbers of runs by day, subject, scenario and verdict.
type overviewData struct {
	When     string          // the range of the runs' start times, as text; empty if no start time is known
	Failures []pageFailure   // the failure groups, worst verdict first
	Days     []dayCounts     // the days on which runs started, oldest first
	Verdicts []check.Verdict // the columns of the tables of counts: the verdicts that occur
	Subjects []verdictCounts // one row for each subject (controllers under test), worst verdict first
	NotClean []verdictCounts // the scenarios and subjects for which clean returns false, worst first
	Clean    []verdictCounts // the scenarios and subjects for which clean returns true
}

// pageFailure has the texts that the HTML page shows about a failure group, such as the reason.
type pageFailure struct {
	Verdict                                              check.Verdict
	Subject, Scenario, Check, Times, Reproduce, Repeated string
	Reason, Guarantee, Page                              string
}

// dayCounts has the number of runs that started on one day (UTC), in total and for each verdict.
type dayCounts struct {
	Day                              string
	Runs, Fail, Unknown, Known, Pass int
}

// Shares returns for each verdict the percentage of the day's runs that have this verdict. It
// omits verdicts that do not occur.
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

// share is a verdict and the percentage of runs that have this verdict.
type share struct {
	Verdict check.Verdict
	Percent string
}

// verdictCounts has the number of runs for each verdict, for one subject (controllers under test).
// It counts the runs of one scenario. If Scenario is empty, it counts the runs of all scenarios.
type verdictCounts struct {
	Scenario, Subject string
	Runs              int
	Counts            []verdictCount
	Seconds, Longest  string // the durations of the median run and of the longest run, in seconds
}

// clean reports whether all counted runs have the verdict pass or not-exercised. The page lists
// such scenarios apart from the other scenarios.
func (t verdictCounts) clean() bool {
	return !slices.ContainsFunc(t.Counts, func(c verdictCount) bool { return c.N > 0 && !needsNoExplanation(c.Verdict) })
}

// verdictCountsTable is the input of the HTML template that shows counts of runs by verdict as a
// table.
type verdictCountsTable struct {
	Verdicts  []check.Verdict
	Rows      []verdictCounts
	Scenarios bool // true if the table has a column for scenarios
}

// verdictCount is a verdict and the number of runs that have this verdict.
type verdictCount struct {
	Verdict check.Verdict
	N       int
}

// overview returns the failure groups of several runs, and the numbers of runs by day, subject,
// scenario and verdict. Links to the pages of runs are relative to the directory dir.
func overview(runs []Run, dir string) overviewData {
	o := overviewData{Days: countByDay(runs)}
	for _, f := range groupFailures(runs) {
		definition, _ := check.Find(f.check)
		link := pageOf(f.smallest, dir)
		if f.check != "" {
			link = checkPageOf(f.smallest, f.check, dir)
		}
		o.Failures = append(o.Failures, pageFailure{
			Guarantee: definition.Guarantee,
			Verdict:   f.verdict, Subject: f.subject, Scenario: f.scenarioText(), Check: f.check, Times: countRuns(f.runs),
			Reproduce: f.smallest.Reproduce, Repeated: f.smallest.Repeated, Reason: f.reason, Page: link,
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

// when returns a text that says when the runs started. An example is "started from 2025-03-01
// 10:00 to 2025-03-01 11:30 UTC". It returns "" if no start time is known.
func when(runs []Run) string {
	var first, last time.Time
	for _, run := range runs {
		if start := run.Started.UTC(); !run.Started.IsZero() {
			if first.IsZero() || start.Before(first) {
				first = start
			}
			if start.After(last) {
				last = start
			}
		}
	}
	const minute = "2006-01-02 15:04"
	switch {
	case first.IsZero():
		return ""
	case first.Format(minute) == last.Format(minute):
		return "started at " + first.Format(minute) + " UTC"
	default:
		return "started from " + first.Format(minute) + " to " + last.Format(minute) + " UTC"
	}
}

// countByDay returns the numbers of runs by verdict, separately for each day (UTC) on which a run
// started. It ignores runs whose start time is unknown.
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

// countVerdicts returns the numbers of runs by verdict, separately for each combination of
// subject (controllers under test) and scenario. The argument scenario is a function that returns
// the name of a run's scenario. If it returns "" for every run, all scenarios are counted
// together.
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
