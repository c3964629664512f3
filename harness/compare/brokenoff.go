package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// BrokenOff is how a workload ended before its last step: with one that failed. What
// would have come after it was never asked of the subject.
type BrokenOff struct {
	Index int    // of the step, from 0
	Step  string // in words
	Why   string
	// Weakness is what upstream is known for and that step came to grief by; nil
	// where it is not known to be that.
	Weakness *check.Weakness
}

// brokenOff reads how the workload of a run ended from the step that failed.
func brokenOff(step *history.Step, results []check.Result) *BrokenOff {
	if step == nil {
		return nil
	}
	return &BrokenOff{Index: step.Index, Step: step.Detail, Why: step.Error, Weakness: weaknessOf(step.Awaited, results)}
}

// weaknessOf is the weakness that keeps an object from being as it was awaited: the
// run was excused for it, with that object as evidence.
func weaknessOf(awaited *history.Ref, results []check.Result) *check.Weakness {
	if awaited == nil {
		return nil
	}
	for _, result := range results {
		if result.Verdict != check.Known {
			continue
		}
		for _, e := range result.Evidence {
			if e.Weakness == 0 || e.Object == nil || e.Object.Resource != awaited.Resource || e.Object.Name != awaited.Name {
				continue
			}
			if i := slices.IndexFunc(check.Weaknesses, func(w *check.Weakness) bool { return w.Trap == e.Weakness }); i >= 0 {
				return check.Weaknesses[i]
			}
		}
	}
	return nil
}

// reached says how a run fared with the step at an index, for a person; it is empty
// where the run did not come to do it.
func (s *Side) reached(index int) string {
	switch b := s.BrokenOff; {
	case b == nil || b.Index > index:
		return "done"
	case b.Index == index:
		return "broken off: " + b.Why
	default:
		return ""
	}
}

// workloads tells of each step with which the workload of one run ended, and that
// of the other did not: undeclared, unless a weakness accounts for it.
func workloads(subject, base *Side) []Difference {
	if subject.BrokenOff != nil && base.BrokenOff != nil && subject.BrokenOff.Index == base.BrokenOff.Index {
		return nil
	}
	var all []Difference
	for _, side := range []*Side{subject, base} {
		b := side.BrokenOff
		if b == nil {
			continue
		}
		d := Difference{
			Aspect: Workloads, Object: fmt.Sprintf("step %d", b.Index), What: b.Step,
			Subject: subject.reached(b.Index), Base: base.reached(b.Index),
		}
		if b.Weakness != nil {
			d.Standing, d.Reason = NotCompared, b.Weakness.String()+"; what would have come after the step is not compared"
		}
		all = append(all, d)
	}
	return all
}

// unfinished tells of runs that ended before they were over. There is nothing else to
// compare of them but the guarantees that they broke by then.
func unfinished(subject, base *Side) []Difference {
	fared := func(s *Side) string { return cmp.Or(s.Unfinished, "went to its end") }
	all := []Difference{{
		Aspect: Workloads, Object: "the run", What: "as a whole", Subject: fared(subject), Base: fared(base),
		Standing: Undeclared, Reason: "nothing else is compared but what failed until then",
	}}
	for _, d := range verdicts(subject, base) {
		if d.Subject == string(check.Fail) || d.Base == string(check.Fail) {
			all = append(all, d)
		}
	}
	return all
}

// cutShort is the side whose workload ended before the other's, by a weakness that
// upstream is known for; nil if neither did.
func cutShort(subject, base *Side) *Side {
	short, other := subject, base
	if short.BrokenOff == nil || other.BrokenOff != nil && other.BrokenOff.Index < short.BrokenOff.Index {
		short, other = other, short
	}
	b := short.BrokenOff
	if b == nil || b.Weakness == nil || other.BrokenOff != nil && other.BrokenOff.Index == b.Index {
		return nil
	}
	return short
}

// follows reports whether a difference of milestones comes of what one run was not
// asked for any more. What a run had shown before the step began with which one of
// them was broken off, both were asked for.
func follows(d *Difference, subject, base *Side) bool {
	step := cutShort(subject, base).BrokenOff.Index
	switch kind := MilestoneKind(d.What); kind {
	case Conditions, Events:
		side, value := subject, d.Subject
		if value == "" {
			side, value = base, d.Base
		}
		return side.since[Milestone{kind, d.Object}][value] >= step
	case Rollout:
		return sameOrder(strings.Split(d.Subject, ", "), strings.Split(d.Base, ", "))
	default:
		return true
	}
}
