package explore

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// Outcome has the results of a search so far. The search tries faults at the writes and watch
// events of a run, as `gauntlet explore` does. The results include those of earlier calls of [Run]
// that were interrupted.
type Outcome struct {
	Plan *Plan
	// Baseline has the runs without faults, from which the search learned.
	Baseline []reports.Run
	// Tried counts the runs with the faults of one place, separately for each action. TriedPairs
	// counts the runs with the faults of two places. A place is a write or a watch event at which
	// a fault is injected.
	Tried      map[Action]*Counts
	TriedPairs Counts
	// Pairs says how many pairs of places there are, how many were pruned, and for which reasons.
	// It is empty until every place has been tried alone.
	Pairs string
	// FailedStarts counts the runs that could not start, or were aborted before a fault fired. Their
	// places have no result.
	FailedStarts int
	// Complete is true if the search has tried every place and every pair of places.
	Complete bool
	// Failed has the runs that show a failure or a known upstream issue, in the order in which they started. A run whose
	// reports can no longer be read has only its verdict, its reason, its subject and its directory.
	Failed []reports.Run
	// Passed has the runs in which every fault of the place fired and that show no failure. Their
	// directories no longer exist; see [reports.Run].
	Passed []reports.Run
	// Unreadable has the directories of failed runs whose reports can no longer be read.
	Unreadable []string
}

// Counts counts places, or pairs of places, at which the search injects faults. There is one run
// for each place or pair. Counts also says how these runs ended.
type Counts struct {
	Places int // all places or pairs, even those that were not tried
	Tried  int // the places or pairs whose run has ended
	Fired  int // the runs in which every fault of the place fired
	Failed int // the runs with the verdict fail
	// Unknown counts the runs with the verdict unknown in which every fault of the place fired. A step
	// of the workload may have failed in such a run.
	Unknown int
	// Known counts the runs with the verdict known-upstream.
	Known int

	passed int // the runs in which every fault of the place fired, and that show no failure
}

// add adds the result of a trial (a run with faults) to the counts c. If the run failed, it also
// adds the run to o.Failed. It returns false if the trial has no result yet.
func (o *Outcome) add(c *Counts, r result) bool {
	c.Places++
	if r.Trial == "" {
		return false
	}
	c.Tried++
	if r.Fired {
		c.Fired++
	}
	if !r.kept() {
		if r.Fired {
			c.passed++
			o.Passed = append(o.Passed, o.report(r.Trial, check.Pass))
		}
		return true
	}
	switch r.Verdict {
	case check.Unknown:
		c.Unknown++
	case check.KnownUpstream:
		c.Known++
	default:
		c.Failed++
	}
	if r.run != nil {
		o.Failed = append(o.Failed, *r.run)
		return true
	}
	runs, err := reports.ReadDirectory(r.Directory)
	if err != nil {
		o.Unreadable = append(o.Unreadable, r.Directory)
		unreadable := o.report(r.Trial, r.Verdict)
		unreadable.Directory = r.Directory
		runs = []reports.Run{unreadable}
	}
	for _, run := range runs {
		own := run.WithoutFailuresOf(o.Baseline)
		own.Verdict, own.Reason = r.Verdict, r.Reason
		o.Failed = append(o.Failed, own)
	}
	return true
}

// report returns the report of a trial (a run with faults) of which only the verdict is known.
func (o *Outcome) report(trial string, verdict check.Verdict) reports.Run {
	run := reports.Run{Scenario: trial, Subject: o.Plan.Baseline.Subject, Verdict: verdict}
	if len(o.Baseline) > 0 {
		other := o.Baseline[0]
		run.Subject, run.Provider, run.VirtualTime, run.Seed, run.Controllers = other.Subject, other.Provider, other.VirtualTime, other.Seed, other.Controllers
	}
	return run
}

// FailuresWithoutFaults returns a line for each check that failed in runs without faults. The search does
// not count these failures as failures of the runs with faults.
func (o *Outcome) FailuresWithoutFaults() []string {
	count, first := map[string]int{}, map[string]string{}
	for _, run := range o.Baseline {
		for _, r := range run.Results {
			if !failed(r) {
				continue
			}
			if count[r.Check]++; count[r.Check] == 1 {
				first[r.Check] = fmt.Sprintf("%s; see %s", r.Reason, run.Directory)
			}
		}
	}
	var lines []string
	for _, id := range slices.Sorted(maps.Keys(count)) {
		lines = append(lines, fmt.Sprintf("%s also fails without faults, in %d of %d runs: %s", id, count[id], len(o.Baseline), first[id]))
	}
	return lines
}

// ReadError returns an error that names the failed runs whose reports cannot be read. It returns
// nil if there is no such run.
func (o *Outcome) ReadError() error {
	var errs []error
	for _, dir := range o.Unreadable {
		errs = append(errs, fmt.Errorf("cannot read the reports of the failed run %s", dir))
	}
	return errors.Join(errs...)
}

// Runs returns the number of runs that say something about the controllers under test. In these
// runs, every fault fired or a failure occurred.
func (o *Outcome) Runs() int {
	n := len(o.Failed)
	for _, c := range append(slices.Collect(maps.Values(o.Tried)), &o.TriedPairs) {
		n += c.passed
	}
	return n
}

// String formats a table with a row for each action, such as crash. The columns are the numbers
// of places, of tried places, of runs whose faults fired, of failed runs, and of runs with the verdicts
// unknown and known-upstream.
func (o *Outcome) String() string {
	var b strings.Builder
	row := func(name string, c *Counts) {
		fmt.Fprintf(&b, "%-13s %7d %7d %7d %7d %7d %7d\n", name, c.Places, c.Tried, c.Fired, c.Failed, c.Unknown, c.Known)
	}
	fmt.Fprintf(&b, "%s\n\n%-13s %7s %7s %7s %7s %7s %7s\n", o.Plan, "fault", "places", "tried", "fired", "failed", "unknown", "known")
	for _, action := range Actions {
		if c := o.Tried[action]; c != nil {
			row(string(action), c)
		}
	}
	if o.Pairs != "" {
		row("pairs", &o.TriedPairs)
		fmt.Fprintf(&b, "\n%s\n", o.Pairs)
	} else {
		b.WriteString("\nno pair of places was tried, because some places have not been tried alone\n")
	}
	return b.String()
}
