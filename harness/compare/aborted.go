package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Aborted is how a workload ended before its last step: with one that failed. What
// would have come after it was never asked of the subject.
type Aborted struct {
	Index  int    // of the step, from 0
	Step   string // in words
	Reason string
	// KnownIssue is what upstream is known for and that step came to grief by; nil
	// where it is not known to be that.
	KnownIssue *check.KnownIssue

	awaited *history.Ref // with that step; nil if nothing was
}

// abortedAt reads how the workload of a run ended from the step that failed.
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

// knownFailure is something that a run was excused for: a weakness that upstream is known
// for broke a check, as an object shows.
type knownFailure struct {
	issue *check.KnownIssue
	check    string // its ID
	object   history.Ref
}

// knownFailures are all that a run was excused for. What only looks like a weakness, and
// was held against its subject, is none.
func knownFailures(results []check.Result) []knownFailure {
	var all []knownFailure
	for _, result := range results {
		for _, e := range result.Evidence {
			i := slices.IndexFunc(check.KnownIssues, func(w *check.KnownIssue) bool { return w.Trap == e.KnownIssue })
			if result.Verdict == check.KnownUpstream && e.Object != nil && i >= 0 {
				all = append(all, knownFailure{check.KnownIssues[i], result.Check, *e.Object})
			}
		}
	}
	return all
}

// stepOutcome says how a run fared with the step at an index, for a person; it is empty
// where the run did not come to do it.
func (s *Side) stepOutcome(index int) string {
	switch b := s.Aborted; {
	case b == nil || b.Index > index:
		return "done"
	case b.Index == index:
		return "broken off: " + b.Reason
	default:
		return ""
	}
}

// workloadDifferences tells of each step with which a workload ended before its last:
// undeclared, unless a weakness accounts for it. Two that ended with one step, by no
// weakness, are both wrong; by a weakness each they got equally far.
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
			d.Classification, d.Reason = NotCompared, b.KnownIssue.String()+"; what would have come after the step is not compared"
		}
		all = append(all, d)
	}
	return all
}

// sameStepDifference is what there is to tell of two workloads that ended with the same step.
func sameStepDifference(subject, base *Side) []Difference {
	mine, theirs := subject.Aborted, base.Aborted
	d := stepDifference(mine.Index, mine.Step, subject, base)
	switch {
	case mine.KnownIssue != nil && theirs.KnownIssue != nil:
		return nil
	case mine.KnownIssue == nil && theirs.KnownIssue == nil:
		d.Classification = BothWrong
	default:
		d.Reason = "one came to grief by a weakness that is known, the other did not"
	}
	return []Difference{d}
}

// stepDifference is how the two fared with a step. Its standing is as yet undeclared.
func stepDifference(index int, step string, subject, base *Side) Difference {
	return Difference{
		Aspect: Workloads, Object: fmt.Sprintf("step %d", index), What: step,
		Subject: subject.stepOutcome(index), Base: base.stepOutcome(index),
	}
}

// unfinishedDifferences tells of runs that ended before they were over. There is nothing else to
// compare of them but the guarantees that they broke by then.
func unfinishedDifferences(subject, base *Side) []Difference {
	fared := func(s *Side) string { return cmp.Or(s.Unfinished, "went to its end") }
	all := []Difference{{
		Aspect: Workloads, Object: "the run", What: "as a whole", Subject: fared(subject), Base: fared(base),
		Classification: Undeclared, Reason: "nothing else is compared but what failed until then",
	}}
	for _, d := range verdictDifferences(subject, base) {
		if d.Subject == string(check.Fail) || d.Base == string(check.Fail) {
			all = append(all, d)
		}
	}
	return all
}

// abortedByKnownIssue is the side whose workload ended before the other's, by a weakness that
// upstream is known for; nil if neither did.
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

// dependsOnMissingSteps reports whether how an object ended hangs on what one run was not asked for
// any more, or on what it came to grief with: the other run changed it later than
// that, or it is what was awaited, or of it.
func dependsOnMissingSteps(d *Difference, subject, base *Side) bool {
	short, long := abortedByKnownIssue(subject, base), subject
	if short == subject {
		long = base
	}
	changed, ok := long.lastChanged[d.Object]
	return ok && changed >= short.Aborted.Index || short.isOrIsOwnedBy(d.Object, *short.Aborted.awaited, long)
}

// followsMissingSteps reports whether a difference of milestones comes of what one run was not
// asked for any more. What a run had shown before the step began with which one of
// them was broken off, both were asked for.
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
