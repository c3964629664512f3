package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Aborted describes a workload that ended early because a step failed. The users did not
// execute the steps after the failed step.
type Aborted struct {
	Index  int    // index of the step, from 0
	Step   string // the step as text
	Reason string
	// KnownIssue is the known upstream issue that made the step fail; nil if there is none.
	KnownIssue *check.KnownIssue

	awaited *history.Ref // the object that the step waited for; nil if there is none
}

// abortedAt returns the description of a workload that the failed step aborted. It returns
// nil if no step failed. It sets KnownIssue if a known failure is about the object that the
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

// knownFailure is a violation that matches a known upstream issue.
type knownFailure struct {
	issue  *check.KnownIssue
	check  string // the ID of the check
	object history.Ref
}

// knownFailures returns the violations of checks with the verdict known-upstream that match
// a known issue. It omits violations of checks with another verdict, even those that match
// a known issue.
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

// stepOutcome returns the outcome of the step at an index. It returns "" if the run did not
// reach the step.
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

// workloadDifferences returns a difference for each aborted workload. The classification is
// NotCompared if a known upstream issue aborted the workload, and Undeclared otherwise.
// sameStepDifference handles two workloads that were aborted at the same step.
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
			d.Classification, d.Reason = NotCompared, b.KnownIssue.String()+"; the steps after it are not compared"
		}
		all = append(all, d)
	}
	return all
}

// sameStepDifference compares two workloads that were aborted at the same step. There is no
// difference if known upstream issues aborted both workloads. Both are wrong if known
// upstream issues aborted neither.
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

// stepDifference returns a difference with the outcomes of a step on both sides. The caller
// sets the classification.
func stepDifference(index int, step string, subject, base *Side) Difference {
	return Difference{
		Aspect: Workloads, Object: fmt.Sprintf("step %d", index), What: step,
		Subject: subject.stepOutcome(index), Base: base.stepOutcome(index),
	}
}

// unfinishedDifferences compares two runs, at least one of which is incomplete. It compares
// only the verdicts of the checks that failed in one of the runs. The other verdicts, the
// end state and the milestones of an incomplete run cover only a part of the run.
func unfinishedDifferences(subject, base *Side) []Difference {
	outcome := func(s *Side) string { return cmp.Or(s.Unfinished, "complete") }
	all := []Difference{{
		Aspect: Workloads, Object: "the run", What: "completion", Subject: outcome(subject), Base: outcome(base),
		Classification: Undeclared, Reason: "only the checks that failed are compared",
	}}
	for _, d := range verdictDifferences(subject, base) {
		if d.Subject == string(check.Fail) || d.Base == string(check.Fail) {
			all = append(all, d)
		}
	}
	return all
}

// abortedByKnownIssue returns the side whose workload a known upstream issue aborted first.
// It returns nil if there is none.
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

// dependsOnMissingSteps reports whether an end state depends on steps that one run did not
// complete. It returns true if the other run changed the object during or after these
// steps. It also returns true if the failed step waited for the object or for an owner of
// the object.
func dependsOnMissingSteps(d *Difference, subject, base *Side) bool {
	short, long := abortedByKnownIssue(subject, base), subject
	if short == subject {
		long = base
	}
	changed, ok := long.lastChanged[d.Object]
	return ok && changed >= short.Aborted.Index || short.isOrIsOwnedBy(d.Object, *short.Aborted.awaited, long)
}

// followsMissingSteps reports whether a difference of milestones depends on steps that one
// run did not complete. Values that occurred before the failed step do not depend on these
// steps.
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
