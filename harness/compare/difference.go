package compare

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-gauntlet/gauntlet/harness/check"
)

// Difference is one difference between a run of the subject and a run of the base. The base is
// the subject that it is compared with.
type Difference struct {
	// Aspect says what differs: the workload, a verdict, an end state or a milestone.
	Aspect Aspect
	// Object says where the difference is: the ID of a check, a step of the workload, or the
	// name of an object. The name is the stable one, which is equal in both runs. For events,
	// Object is the kind of the objects.
	Object string
	// What is the part of Object that differs: the path of a field, the kind of a milestone, or
	// the text of the step.
	What string
	// Subject and Base are the values in the two runs. A value is empty if the run has none.
	Subject, Base string
	// Classification says whether the difference is allowed.
	Classification Classification
	// Reason says why the difference has its classification. It may be empty if the
	// difference is undeclared.
	Reason string
}

// Aspect is a part of a run that is compared with the other run.
type Aspect string

// The aspects, in the order in which reports list them.
const (
	Workloads      Aspect = "workload"  // whether each run completed its workload
	Verdicts       Aspect = "verdict"   // the verdicts of the checks
	EndStates      Aspect = "end state" // the fields of the objects at the end of the runs
	MilestoneOrder Aspect = "milestone" // the values of the milestones during the runs
)

// Classification says whether a difference is allowed.
type Classification string

// The classifications, worst first.
const (
	// Undeclared means that no rule allows the difference.
	Undeclared Classification = "undeclared"
	// BothWrong means that both subjects violate a guarantee. Reports list the guarantee,
	// although the two verdicts do not differ.
	BothWrong Classification = "both wrong"
	// Declared means that a rule of [Deliberate] covers the difference: our controllers behave
	// differently on purpose.
	Declared Classification = "declared"
	// NotCompared means that a known upstream issue aborted one of the runs. That run did not
	// complete the steps on which the difference depends.
	NotCompared Classification = "not compared"
	// Accepted means that a rule of [Acceptable] covers the difference: the guarantees allow
	// both behaviors.
	Accepted Classification = "accepted"
)

// String returns the difference as one line: aspect, object and part, then the subject's value
// and the base's value.
func (d Difference) String() string {
	return fmt.Sprintf("%s %s, %s: %s; %s", d.Aspect, d.Object, d.What, orNone(d.Subject), orNone(d.Base))
}

// orNone returns the text, or "none" if the text is empty.
func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// Differences returns the differences between a run of the subject and a run of the base, worst
// classification first.
//
// It compares the completed steps, the verdicts, the end states and the milestones. The rules
// in [Deliberate] apply only if the subject is ours and the base is not. The rules in
// [Incomparable] apply only if a known upstream issue aborted one run.
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

// WorstFirst is the order in which reports list classifications, from worst to best.
var WorstFirst = []Classification{Undeclared, BothWrong, Declared, NotCompared, Accepted}

// ours is the name of the subject to which the rules in [Deliberate] apply.
const ours = "ours"

// ruleTable is a list of rules. All differences that they cover get the same classification.
type ruleTable struct {
	classification Classification
	rules          []Rule
}

// classify sets the classification and the reason from the first rule that covers the
// difference. If no rule covers it, the classification becomes Undeclared.
//
// It does nothing if the difference already has a classification.
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

// verdictDifferences compares the verdicts of the checks that both runs have. It also returns a
// difference with the classification BothWrong for each check that failed in both runs.
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

// wholeObject is the value of Difference.What if only one of the two runs has the object.
const wholeObject = "the object"

// endStateDifferences compares the objects at the end of the two runs, field by field. For an
// object that only one run has, it returns one difference.
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

// presence describes whether a run has an object at its end. It returns "spec.replicas: N" if the
// object has this field, and otherwise "exists". If the argument is nil, the run lacks the object,
// and the result is "".
func presence(object map[string]string) string {
	if object == nil {
		return ""
	}
	if replicas, ok := object["spec.replicas"]; ok {
		return "spec.replicas: " + replicas
	}
	return "exists"
}

// milestoneDifferences compares the milestones of the two runs, such as rollouts, conditions
// and events.
//
// For conditions and events, it returns one difference for each value that only one run has.
// For other milestones, it compares the whole sequence of values.
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
		if m.Kind == Conditions || m.Kind == Events { // the values of these kinds are sets
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

// missing returns the values that others does not contain.
func missing(values, others []string) []string {
	return slices.DeleteFunc(slices.Clone(values), func(v string) bool { return slices.Contains(others, v) })
}

// keys returns the keys of both maps, sorted and each once.
func keys[V any](a, b map[string]V) []string { return slices.Sorted(maps.Keys(merged(a, b))) }

// merged returns a map with the entries of both maps. If both have a key, the value of b is
// used.
func merged[K comparable, V any](a, b map[K]V) map[K]V {
	all := maps.Clone(a)
	if all == nil {
		all = map[K]V{}
	}
	maps.Copy(all, b)
	return all
}

// Diff returns the differences of the two end states as text in the format of go-cmp. Lines
// that begin with "-" show the base, and lines that begin with "+" the subject. If the end
// states are equal, Diff returns "".
func Diff(subject, base *Side) string { return cmp.Diff(base.End, subject.End) }
