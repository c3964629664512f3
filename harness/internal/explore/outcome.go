package explore

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kube-gauntlet/gauntlet/reports"
)

// Outcome has the results of a search so far.
type Outcome struct {
	Plan *Plan
	// Baseline are the runs without faults.
	Baseline []reports.Run
	// Tried counts the runs with the fault of one place, by action. TriedPairs counts the runs with
	// the faults of two places.
	Tried      map[Action]*Counts
	TriedPairs Counts
	// Pairs is the number of pairs of places. It is 0 while some place has not been tried.
	Pairs int
	// Complete is true if every place and every pair was tried.
	Complete bool
	// Failed are the runs that show a failure, in the order in which they started.
	Failed []reports.Run
	// Unreadable are the directories of failed runs whose reports cannot be read any more.
	Unreadable []string
}

// Counts has numbers of places and of the runs that tried them.
type Counts struct {
	Places int // all places, tried or not
	Tried  int
	Fired  int // runs in which every fault of the place fired
	Failed int // runs that show a failure

	passed int // runs in which every fault of the place fired, and that show no failure
}

// add adds the result of a trial to counts. If the run failed, it adds the run to the outcome. It
// returns false if the trial has no result yet.
func (o *Outcome) add(c *Counts, r result) bool {
	c.Places++
	if r.Trial == "" {
		return false
	}
	c.Tried++
	if r.Fired {
		c.Fired++
	}
	if !r.failed() {
		if r.Fired {
			c.passed++
		}
		return true
	}
	c.Failed++
	if r.run != nil {
		o.Failed = append(o.Failed, *r.run)
		return true
	}
	runs, err := reports.ReadDirectory(r.Directory)
	if err != nil {
		o.Unreadable = append(o.Unreadable, r.Directory)
		return true
	}
	for _, run := range runs {
		own := run.WithoutFailuresOf(o.Baseline)
		own.Verdict, own.Reason = r.Verdict, r.Reason
		o.Failed = append(o.Failed, own)
	}
	return true
}

// Runs returns the number of runs that reached their places or show a failure.
func (o *Outcome) Runs() int {
	n := len(o.Failed)
	for _, c := range append(slices.Collect(maps.Values(o.Tried)), &o.TriedPairs) {
		n += c.passed
	}
	return n
}

// String formats a table with the numbers of places and of runs, by action.
func (o *Outcome) String() string {
	var b strings.Builder
	row := func(name string, c *Counts) {
		fmt.Fprintf(&b, "%-13s %7d %7d %7d %7d\n", name, c.Places, c.Tried, c.Fired, c.Failed)
	}
	fmt.Fprintf(&b, "%s\n\n%-13s %7s %7s %7s %7s\n", o.Plan, "fault", "places", "tried", "fired", "failed")
	for _, action := range Actions {
		if c := o.Tried[action]; c != nil {
			row(string(action), c)
		}
	}
	if o.Pairs > 0 {
		row("pairs", &o.TriedPairs)
	}
	for _, dir := range o.Unreadable {
		fmt.Fprintf(&b, "the failed run %s cannot be read any more\n", dir)
	}
	return b.String()
}
