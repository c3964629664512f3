package reports

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/check"
)

// overviewData has the data for the first part of a page of several runs. This part shows the
// failure groups, and the numbers of runs by day, subject, scenario and verdict.
type overviewData struct {
	When     string          // the range of the start times; empty if no start time is known
	Failures []pageFailure   // worst first
	Days     []dayCounts     // oldest first
	Verdicts []check.Verdict // the columns of the tables of counts
	Subjects []verdictCounts // counts by subject, worst first
	NotClean []verdictCounts // counts by scenario and subject if at least one run did not pass, worst first
	Clean    []verdictCounts // counts by scenario and subject if all runs passed
}

// pageFailure has, as text, the fields of a failure group that the HTML page shows.
type pageFailure struct {
	Verdict                                    check.Verdict
	Subject, Scenario, Check, Times, Reproduce string
	Reason, Guarantee, Page                    string
}

// dayCounts has the number of runs that started on one day (UTC), by verdict.
type dayCounts struct {
	Day                              string
	Runs, Fail, Unknown, Known, Pass int
}

// Shares returns which percentage of the day's runs has each verdict. It omits verdicts that do
// not occur.
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

// share is the percentage of runs that have a verdict.
type share struct {
	Verdict check.Verdict
	Percent string
}

// verdictCounts has the number of runs on one subject for each verdict. It counts the runs of
// one scenario, or of all scenarios if Scenario is empty.
type verdictCounts struct {
	Scenario, Subject string
	Runs              int
	Counts            []verdictCount
	Seconds, Longest  string // the durations of the median run and of the longest run, in seconds
}

// clean reports whether the verdict of every run is pass or not-exercised.
func (t verdictCounts) clean() bool {
	return !slices.ContainsFunc(t.Counts, func(c verdictCount) bool { return c.N > 0 && !needsNoExplanation(c.Verdict) })
}

// verdictCountsTable is the data from which an HTML template makes a table of runs by verdict.
type verdictCountsTable struct {
	Verdicts  []check.Verdict
	Rows      []verdictCounts
	Scenarios bool // true if the table has a column for scenarios
}

// verdictCount is the number of runs with a verdict.
type verdictCount struct {
	Verdict check.Verdict
	N       int
}

// overview returns the failures and counts of several runs. Links to the pages of runs are
// relative to the directory dir.
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
			Reproduce: f.smallest.Reproduce, Reason: f.reason, Page: link,
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

// when returns the earliest and the latest start time of the runs as text. It returns "" if no
// start time is known.
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

// countByDay counts the runs by verdict for each day (UTC) on which runs started. It ignores
// runs without a start time.
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

// countVerdicts counts the runs by verdict, separately for each subject and scenario. The
// function scenario returns the name of the scenario of a run, or always "" to count all
// scenarios together.
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
