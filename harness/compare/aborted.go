package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Aborted describes a workload that ended early because a step failed. The run did not execute
// the steps after the failed step.
type Aborted struct {
	Index  int    // the position of the failed step in the workload, counted from 0
	Step   string // the failed step as text, such as "scale ReplicaSet web to 5"
	Reason string // the error message of the failed step
	// KnownIssue is the known upstream issue because of which the step failed. It is nil if the
	// step failed for another reason.
	KnownIssue *check.KnownIssue

	// awaited is the object that the step was waiting for when the step timed out. It is nil if
	// the step did not fail because of a timeout.
	awaited *history.Ref
}

// abortedAt returns a description of the failed step that aborted the workload. It returns nil if
// the argument step is nil, which means that no step failed.
//
// The description has a KnownIssue if a check found a known upstream issue in the object that the
// step waited for.
func abortedAt(step *history.Step, results []check.Result) *Aborted {
	if step == nil {
		return nil
	}
	b := &Aborted{Index: step.Index, Step: step.Detail, Reason: step.Error, awaited: step.Awaited}
	for _, e := range knownFailures(results) {
		if b.awaited != nil && e.object.Resource == b.awaited.Resource && e.object.Name == b.awaited.Name {
			b.KnownIssue = e.issue
			break
		}
	}
	return b
}

// knownFailure is a violation of a guarantee that a known upstream issue explains.
type knownFailure struct {
	issue  *check.KnownIssue
	check  string      // the ID of the check that found the violation
	object history.Ref // the object that violates the guarantee
}

// knownFailures returns the violations in a run that a known upstream issue explains.
//
// knownFailures reads only checks with the verdict known-upstream, because a check with the
// verdict fail also has violations that no known issue explains.
func knownFailures(results []check.Result) []knownFailure {
	var all []knownFailure
	for _, result := range results {
		for _, e := range result.Evidence {
			i := slices.IndexFunc(check.KnownIssues, func(issue *check.KnownIssue) bool { return issue.Slug == e.KnownIssue })
			if result.Verdict == check.KnownUpstream && e.Object != nil && i >= 0 {
				all = append(all, knownFailure{check.KnownIssues[i], result.Check, *e.Object})
			}
		}
	}
	return all
}

// stepOutcome returns a text about the end of a workload step in this run: "done" or "aborted:
// REASON". It returns "" if the run did not reach the step. The index counts from 0.
func (s *Side) stepOutcome(index int) string {
	switch b := s.Aborted; {
	case b == nil || b.Index > index:
		return "done"
	case b.Index == index:
		return "aborted: " + b.Reason
	default:
		return ""
	}
}

// workloadDifferences returns the differences between two workloads of which at least one was
// aborted. It returns none if both workloads completed.
//
//   - If both workloads were aborted at the same step, the result is that of sameStepDifference.
//   - Otherwise there is one difference for each aborted workload. If a known upstream issue
//     aborted the workload, the classification is NotCompared.
//   - For any other aborted workload, the method classify later sets the classification
//     Undeclared, because no rule allows it.
func workloadDifferences(subject, base *Side) []Difference {
	mine, theirs := subject.Aborted, base.Aborted
	if mine != nil && theirs != nil && mine.Index == theirs.Index {
		return sameStepDifference(subject, base)
	}
	var all []Difference
	for _, b := range []*Aborted{mine, theirs} {
		if b == nil {
			continue
		}
		d := stepDifference(b.Index, b.Step, subject, base)
		if b.KnownIssue != nil {
			d.Classification, d.Reason = NotCompared, b.KnownIssue.String()+"; the steps after the aborted step are not compared"
		}
		all = append(all, d)
	}
	return all
}

// sameStepDifference returns the difference between two workloads that were aborted at the same
// step.
//
// If known upstream issues aborted both workloads, it returns no difference. If neither was
// aborted by a known upstream issue, the difference has the classification BothWrong. Otherwise
// the caller classifies the difference.
func sameStepDifference(subject, base *Side) []Difference {
	mine, theirs := subject.Aborted, base.Aborted
	d := stepDifference(mine.Index, mine.Step, subject, base)
	switch {
	case mine.KnownIssue != nil && theirs.KnownIssue != nil:
		return nil
	case mine.KnownIssue == nil && theirs.KnownIssue == nil:
		d.Classification = BothWrong
	default:
		d.Reason = "a known upstream issue aborted one run, but not the other"
	}
	return []Difference{d}
}

// stepDifference returns a difference that contains the outcome of one step in each run. The
// caller sets the classification.
func stepDifference(index int, step string, subject, base *Side) Difference {
	return Difference{
		Aspect: Workloads, Object: fmt.Sprintf("step %d", index), What: step,
		Subject: subject.stepOutcome(index), Base: base.stepOutcome(index),
	}
}

// unfinishedDifferences returns the differences between two runs of which at least one is
// incomplete. The first difference says which run is incomplete.
//
// The other differences are about checks that failed in at least one of the runs. A violation in
// an incomplete run is still a violation. But all other results of an incomplete run cover only a
// part of the run.
func unfinishedDifferences(subject, base *Side) []Difference {
	outcome := func(s *Side) string { return cmp.Or(s.Unfinished, "complete") }
	all := []Difference{{
		Aspect: Workloads, Object: "the run", What: "completion", Subject: outcome(subject), Base: outcome(base),
		Classification: Undeclared, Reason: "one of the runs is incomplete, so only the checks that failed are compared",
	}}
	for _, d := range verdictDifferences(subject, base) {
		if d.Subject == string(check.Fail) || d.Base == string(check.Fail) {
			all = append(all, d)
		}
	}
	return all
}

// abortedByKnownIssue returns the run that a known upstream issue aborted at a step that the
// other run completed. It returns nil if there is no such run.
func abortedByKnownIssue(subject, base *Side) *Side {
	short, other := subject, base
	if short.Aborted == nil || other.Aborted != nil && other.Aborted.Index < short.Aborted.Index {
		short, other = other, short
	}
	b := short.Aborted
	if b == nil || b.KnownIssue == nil || other.Aborted != nil && other.Aborted.Index == b.Index {
		return nil
	}
	return short
}

// dependsOnMissingSteps reports whether an end state differs only because one run was aborted
// early. A known upstream issue aborted this run at a step that the other run, the longer one,
// completed.
//
// dependsOnMissingSteps returns true if the longer run changed the object during or after this
// step. It also returns true if the aborted run failed while it waited for the object or for its
// owner.
func dependsOnMissingSteps(d *Difference, subject, base *Side) bool {
	short, long := abortedByKnownIssue(subject, base), subject
	if short == subject {
		long = base
	}
	changed, ok := long.lastChanged[d.Object]
	return ok && changed >= short.Aborted.Index || short.isOrIsOwnedBy(d.Object, *short.Aborted.awaited, long)
}

// followsMissingSteps reports whether two runs differ in a milestone only because one run was
// aborted early. A milestone is a property of an object, such as its conditions, that is compared.
// A known upstream issue aborted the run, so it lacks the aborted step and all later steps.
//
//   - A condition or an Event: true if it first occurred during the aborted step or later.
//   - A Rollout, the sequence of a Deployment's ReplicaSets: true if the ReplicaSets that both
//     runs have are in the same order.
//   - All other milestones: always true.
func followsMissingSteps(d *Difference, subject, base *Side) bool {
	step := abortedByKnownIssue(subject, base).Aborted.Index
	switch kind := MilestoneKind(d.What); kind {
	case Conditions, Events:
		side, value := subject, d.Subject
		if value == "" {
			side, value = base, d.Base
		}
		return side.firstSeen[Milestone{kind, d.Object}][value] >= step
	case Rollout:
		return inSameOrder(strings.Split(d.Subject, ", "), strings.Split(d.Base, ", "))
	default:
		return true
	}
}
