package compare

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-gauntlet/gauntlet/harness/check"
)

// Difference is something in which two runs of one scenario differ.
type Difference struct {
	Aspect Aspect
	// Object is what differs: a check's ID, a step of the workload, or an object by its
	// stable name.
	Object string
	// What is what of it differs: the path of a field, the kind of a milestone, or the
	// step in words.
	What          string
	Subject, Base string // empty where that side has none
	// Classification says whether it may be, and why.
	Classification Classification
	Reason         string
}

// Aspect is what of two runs is compared.
type Aspect string

// The aspects, in the order of reports.
const (
	Workloads      Aspect = "workload"
	Verdicts       Aspect = "verdict"
	EndStates      Aspect = "end state"
	MilestoneOrder Aspect = "milestone"
)

// Classification is what is to be thought of a difference.
type Classification string

// The standings, worst first.
const (
	// Undeclared: nobody has said that it may be.
	Undeclared Classification = "undeclared"
	// BothWrong: both break a guarantee. It is no difference, and no comfort.
	BothWrong Classification = "both wrong"
	// Declared: ours is meant to differ there.
	Declared Classification = "declared"
	// NotCompared: one run was broken off, by a weakness that upstream is known for,
	// before it came to be asked for what the other did.
	NotCompared Classification = "not compared"
	// Accepted: either way is right.
	Accepted Classification = "accepted"
)

// String is the difference in a line.
func (d Difference) String() string {
	return fmt.Sprintf("%s %s, %s: %s; %s", d.Aspect, d.Object, d.What, orNone(d.Subject), orNone(d.Base))
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// Differences compares a run of the subject with one of the base: how far the
// workload came, verdicts, end states, then milestones. Each difference has its
// standing by the tables Acceptable, Deliberate, which is for ours alone, and
// Incomparable, which is for runs that were broken off.
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

// WorstFirst is the order of reports.
var WorstFirst = []Classification{Undeclared, BothWrong, Declared, NotCompared, Accepted}

// ours is the subject that the table Deliberate is about.
const ours = "ours"

// ruleTable is rules that give one standing.
type ruleTable struct {
	classification Classification
	rules    []Rule
}

// classify looks a difference up: the first rule that it matches decides.
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

// wholeObject is what of an object differs that only one side has.
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
		return "asks for " + replicas + " pods"
	}
	return "is there"
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
		if m.Kind == Conditions || m.Kind == Events { // sets: each that only one has is a difference
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

// missing are the values that others do not have.
func missing(values, others []string) []string {
	return slices.DeleteFunc(slices.Clone(values), func(v string) bool { return slices.Contains(others, v) })
}

// keys are those of either map, in order.
func keys[V any](a, b map[string]V) []string { return slices.Sorted(maps.Keys(merged(a, b))) }

func merged[K comparable, V any](a, b map[K]V) map[K]V {
	all := maps.Clone(a)
	if all == nil {
		all = map[K]V{}
	}
	maps.Copy(all, b)
	return all
}

// Diff shows how the end states of two runs differ, for a person; it is empty if
// they do not.
func Diff(subject, base *Side) string { return cmp.Diff(base.End, subject.End) }
