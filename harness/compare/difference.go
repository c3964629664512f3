package compare

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-gauntlet/gauntlet/harness/check"
)

// Difference is one difference between two runs of a scenario. One run tests the subject (the
// controllers under test). The other run, the base run, tests the controllers with which the
// subject is compared.
type Difference struct {
	// Aspect says what differs: the workload, a verdict, an end state or a milestone. A milestone
	// is, for example, a rollout or a condition.
	Aspect Aspect
	// Object says where the difference is: a check's ID, a step of the workload, or an object's
	// stable name. A stable name is equal in both runs, such as "deployments.apps web"; see
	// [names]. For milestones of Events, Object is a Kind, such as Deployment.
	Object string
	// What names the detail of Object that differs. Examples are a field's path, the kind of a
	// milestone and the text of a step. For a check, What is "verdict".
	What string
	// Subject has the value in the run of the controllers under test. Base has the value in the
	// base run, with which that run is compared. A value is empty if the run has no such value.
	Subject, Base string
	// Classification says whether the difference is allowed.
	Classification Classification
	// Reason explains the classification to a user. The reason of an undeclared difference may be
	// empty.
	Reason string
}

// Aspect says in which respect two runs differ, such as verdicts or end states.
type Aspect string

// These are the aspects in which two runs can differ, in the order in which reports list the
// differences.
const (
	Workloads      Aspect = "workload"  // one of the two runs did not complete its workload
	Verdicts       Aspect = "verdict"   // a check has different verdicts
	EndStates      Aspect = "end state" // a field of an object differs at the end of the runs
	MilestoneOrder Aspect = "milestone" // a rollout, a condition, a revision or an Event differs
)

// Classification says whether a difference between two runs is allowed, such as "accepted".
type Classification string

// These are the classifications of a difference between two runs, worst first.
const (
	// Undeclared means that no rule allows the difference. It makes the comparison fail.
	Undeclared Classification = "undeclared"
	// BothWrong means that both subjects violate the same guarantee, or fail at the same step. The
	// two results are equal, but reports list them like a difference, because both are wrong.
	// BothWrong makes the comparison fail.
	BothWrong Classification = "both wrong"
	// Declared means that our controllers behave differently from the base on purpose. A rule of
	// [Deliberate] covers the difference.
	Declared Classification = "declared"
	// NotCompared means that a known upstream issue aborted one of the runs. The difference
	// depends on steps that the aborted run did not complete.
	NotCompared Classification = "not compared"
	// Accepted means that the guarantees allow the behavior in both runs. A rule of [Acceptable]
	// covers the difference.
	Accepted Classification = "accepted"
)

// String returns the difference as one line. In the example "verdict converged, verdict: pass;
// fail", the runs have different verdicts of the check "converged". The first value is from the run
// of the controllers under test. The second is from the base run, with which that run is compared.
func (d Difference) String() string {
	return fmt.Sprintf("%s %s, %s: %s; %s", d.Aspect, d.Object, d.What, orNone(d.Subject), orNone(d.Base))
}

// orNone returns the text for a value in [Difference.String]. If the value s is empty, one run has
// no such value, and the text is "none".
func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// Differences returns the differences between the run of a subject (controllers under test) and
// the base run. The worst classification is first.
//
// Differences compares the completed steps, the verdicts, the end states and the milestones, such
// as rollouts. The rules in [Deliberate] apply only if the subject is --subject=ours and the base
// is another one. The rules in [Incomparable] apply only if a known upstream issue aborted one
// run. If a run is incomplete, only failed checks are compared.
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

// WorstFirst lists the classifications from worst to best. Reports list differences in this order.
var WorstFirst = []Classification{Undeclared, BothWrong, Declared, NotCompared, Accepted}

// ours is the name of the subject (controllers under test) that consists of this repository's
// controllers. The rules in [Deliberate] apply only to this subject.
const ours = "ours"

// ruleTable is a list of rules with the classification of every difference that one of the rules
// covers.
type ruleTable struct {
	classification Classification
	rules          []Rule
}

// classify sets the difference's classification and reason from the first rule that covers the
// difference. If no rule covers the difference, the classification becomes Undeclared.
//
// classify does nothing if the difference already has a classification.
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

// verdictDifferences returns the checks that have different verdicts in the two runs. It ignores
// checks that only one run has. A check that failed in both runs gives a difference with the
// classification BothWrong.
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

// wholeObject is the value of Difference.What for an object that only one of the two runs has.
const wholeObject = "the object"

// endStateDifferences returns one difference for each field of an object that differs at the end
// of the two runs. If only one run has an object, it returns one difference for the whole object.
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

// presence returns the text that a report shows for an object that only one run has. The
// argument object has the object's fields by path, or is nil if the run lacks the object.
//
// The result is "spec.replicas: N" if the object has this field, and otherwise "exists". For
// nil, it is "".
func presence(object map[string]string) string {
	if object == nil {
		return ""
	}
	if replicas, ok := object["spec.replicas"]; ok {
		return "spec.replicas: " + replicas
	}
	return "exists"
}

// milestoneDifferences returns the differences between the milestones of two runs. Milestones are
// properties of objects whose values during the runs are compared, such as rollouts, conditions
// and Events.
//
// For conditions and Events, it returns one difference for each value that only one run has. For
// other milestones, it compares the whole sequence of values.
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

// missing returns the values that the slice others does not contain. For example, these are the
// conditions that only one of two runs had.
func missing(values, others []string) []string {
	return slices.DeleteFunc(slices.Clone(values), func(v string) bool { return slices.Contains(others, v) })
}

// keys returns the sorted keys of two maps, each once. With it, a comparison visits the objects
// of both runs.
func keys[V any](a, b map[string]V) []string { return slices.Sorted(maps.Keys(merged(a, b))) }

// merged returns a new map with the entries of a and b. With it, a comparison visits the keys of
// both runs. For a key in both maps, the result has the value from b.
func merged[K comparable, V any](a, b map[K]V) map[K]V {
	all := maps.Clone(a)
	if all == nil {
		all = map[K]V{}
	}
	maps.Copy(all, b)
	return all
}

// Diff returns the differences between the end states of two runs as text in go-cmp's format. Lines
// that begin with "-" show the base run. Lines that begin with "+" show the run that is compared
// with it, the subject's run. If the end states are equal, Diff returns "".
func Diff(subject, base *Side) string { return cmp.Diff(base.End, subject.End) }
