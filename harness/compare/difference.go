package compare

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-gauntlet/gauntlet/harness/check"
)

// Difference is one difference between two runs of a scenario.
type Difference struct {
	Aspect Aspect
	// Object identifies the object of the difference. It is the ID of a check, a step of
	// the workload, or the stable name of an object.
	Object string
	// What is the part of Object that differs. It is the path of a field, the kind of a
	// milestone, or the text of the step.
	What          string
	Subject, Base string // empty if that side has no value
	// Classification says whether the difference is allowed, and Reason says why.
	Classification Classification
	Reason         string
}

// Aspect is the part of two runs in which they differ.
type Aspect string

// The aspects, in the order in which reports list them.
const (
	Workloads      Aspect = "workload"
	Verdicts       Aspect = "verdict"
	EndStates      Aspect = "end state"
	MilestoneOrder Aspect = "milestone"
)

// Classification says whether a difference is allowed.
type Classification string

// The classifications, worst first.
const (
	// Undeclared means that no rule allows the difference.
	Undeclared Classification = "undeclared"
	// BothWrong means that both subjects violate a guarantee. Reports list the guarantee,
	// although the subjects do not differ.
	BothWrong Classification = "both wrong"
	// Declared means that our controllers differ from the base deliberately.
	Declared Classification = "declared"
	// NotCompared means that a known upstream issue aborted one run before the steps that
	// the difference depends on.
	NotCompared Classification = "not compared"
	// Accepted means that the guarantees allow both behaviors.
	Accepted Classification = "accepted"
)

// String returns the difference as one line.
func (d Difference) String() string {
	return fmt.Sprintf("%s %s, %s: %s; %s", d.Aspect, d.Object, d.What, orNone(d.Subject), orNone(d.Base))
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// Differences compares a run of the subject with a run of the base. It compares completed
// steps, verdicts, end states, then milestones. The tables Deliberate, Incomparable and
// Acceptable classify the differences. Deliberate applies only to our controllers, and
// Incomparable only to aborted runs.
func Differences(subject, base *Side) []Difference {
	all := slices.Concat(workloadDifferences(subject, base), verdictDifferences(subject, base), endStateDifferences(subject, base), milestoneDifferences(subject, base))
	if subject.Unfinished+base.Unfinished != "" {
		all = unfinishedDifferences(subject, base)
	}
	var tables []ruleTable
	if subject.Subject == ours && base.Subject != ours {
		tables = append(tables, ruleTable{Declared, Deliberate})
	}
	if abortedByKnownIssue(subject, base) != nil {
		tables = append(tables, ruleTable{NotCompared, Incomparable})
	}
	tables = append(tables, ruleTable{Accepted, Acceptable})
	for i := range all {
		all[i].classify(tables, subject, base)
	}
	slices.SortStableFunc(all, func(a, b Difference) int {
		return slices.Index(WorstFirst, a.Classification) - slices.Index(WorstFirst, b.Classification)
	})
	return all
}

// WorstFirst is the order of classifications in reports.
var WorstFirst = []Classification{Undeclared, BothWrong, Declared, NotCompared, Accepted}

// ours is the name of the subject to which the table Deliberate applies.
const ours = "ours"

// ruleTable is a list of rules with one classification.
type ruleTable struct {
	classification Classification
	rules          []Rule
}

// classify gives the difference the classification and the reason of the first rule that
// covers it.
func (d *Difference) classify(tables []ruleTable, subject, base *Side) {
	if d.Classification != "" {
		return
	}
	for _, t := range tables {
		for _, rule := range t.rules {
			if rule.covers(d, subject, base) {
				d.Classification, d.Reason = t.classification, rule.Reason
				if rule.Issue != "" {
					d.Reason += " (" + rule.Issue + ")"
				}
				return
			}
		}
	}
	d.Classification = Undeclared
}

func verdictDifferences(subject, base *Side) []Difference {
	var all []Difference
	for _, theirs := range base.Results {
		i := slices.IndexFunc(subject.Results, func(r check.Result) bool { return r.Check == theirs.Check })
		if i < 0 {
			continue
		}
		mine := subject.Results[i]
		d := Difference{Aspect: Verdicts, Object: theirs.Check, What: "verdict", Subject: string(mine.Verdict), Base: string(theirs.Verdict)}
		switch {
		case mine.Verdict == check.Fail && theirs.Verdict == check.Fail:
			d.Classification, d.Reason = BothWrong, mine.Reason
		case mine.Verdict == theirs.Verdict:
			continue
		}
		all = append(all, d)
	}
	return all
}

// wholeObject is Difference.What for an object that only one side has.
const wholeObject = "the object"

func endStateDifferences(subject, base *Side) []Difference {
	var all []Difference
	for _, name := range keys(subject.End, base.End) {
		mine, theirs := subject.End[name], base.End[name]
		if (mine == nil || theirs == nil) && !strings.HasPrefix(name, podsOf) {
			all = append(all, Difference{Aspect: EndStates, Object: name, What: wholeObject, Subject: presence(mine), Base: presence(theirs)})
			continue
		}
		for _, path := range keys(mine, theirs) {
			if mine[path] != theirs[path] {
				all = append(all, Difference{Aspect: EndStates, Object: name, What: path, Subject: mine[path], Base: theirs[path]})
			}
		}
	}
	return all
}

func presence(object map[string]string) string {
	if object == nil {
		return ""
	}
	if replicas, ok := object["spec.replicas"]; ok {
		return "spec.replicas: " + replicas
	}
	return "exists"
}

func milestoneDifferences(subject, base *Side) []Difference {
	var all []Difference
	milestones := slices.SortedFunc(maps.Keys(merged(subject.Milestones, base.Milestones)), func(a, b Milestone) int {
		return strings.Compare(string(a.Kind)+a.Object, string(b.Kind)+b.Object)
	})
	for _, m := range milestones {
		mine, theirs := subject.Milestones[m], base.Milestones[m]
		if slices.Equal(mine, theirs) {
			continue
		}
		if m.Kind == Conditions || m.Kind == Events { // these values are sets: each value that only one side has is a difference
			for _, value := range missing(mine, theirs) {
				all = append(all, Difference{Aspect: MilestoneOrder, Object: m.Object, What: string(m.Kind), Subject: value})
			}
			for _, value := range missing(theirs, mine) {
				all = append(all, Difference{Aspect: MilestoneOrder, Object: m.Object, What: string(m.Kind), Base: value})
			}
			continue
		}
		all = append(all, Difference{
			Aspect: MilestoneOrder, Object: m.Object, What: string(m.Kind),
			Subject: strings.Join(mine, ", "), Base: strings.Join(theirs, ", "),
		})
	}
	return all
}

// missing returns the elements of values that are not in others.
func missing(values, others []string) []string {
	return slices.DeleteFunc(slices.Clone(values), func(v string) bool { return slices.Contains(others, v) })
}

// keys returns the keys that occur in a, b or both, sorted.
func keys[V any](a, b map[string]V) []string { return slices.Sorted(maps.Keys(merged(a, b))) }

func merged[K comparable, V any](a, b map[K]V) map[K]V {
	all := maps.Clone(a)
	if all == nil {
		all = map[K]V{}
	}
	maps.Copy(all, b)
	return all
}

// Diff returns the difference of two end states as text, in the format of go-cmp. It
// returns "" if they are equal.
func Diff(subject, base *Side) string { return cmp.Diff(base.End, subject.End) }
