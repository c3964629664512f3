package compare

import (
	"slices"
	"strings"
)

// Rule says of a kind of difference why it may be.
type Rule struct {
	// Issue is where a deliberate difference was decided; empty for what either
	// subject may do.
	Issue  string
	Reason string
	Match  func(*Difference) bool
}

// Acceptable are the differences that say nothing of either subject. Each is a
// reordering or a choice that the guarantees allow.
var Acceptable = []Rule{
	{
		Reason: "what a check is put to depends on timing",
		Match: func(d *Difference) bool {
			return d.Aspect == Verdicts && slices.Contains(held, d.Subject) && slices.Contains(held, d.Base)
		},
	},
	{
		Reason: "how far a ReplicaSet was scaled at a time depends on when its pods were ready",
		Match:  func(d *Difference) bool { return d.Aspect == Courses && d.What == string(Sizes) },
	},
	{
		Reason: "events are rate-limited, aggregated and lost; one about a failure needs the failure to happen",
		Match: func(d *Difference) bool {
			return d.Aspect == Courses && d.What == string(Events) && strings.HasPrefix(d.Subject+d.Base, "Failed")
		},
	},
	{
		Reason: "a condition that comes and goes may do so between two status writes; one of a failure needs the failure to happen",
		Match: func(d *Difference) bool {
			return d.Aspect == Courses && d.What == string(Conditions) && passing(d.Subject+d.Base)
		},
	},
	{
		Reason: "which pods fail is chance, and nobody deletes those that have",
		Match:  func(d *Difference) bool { return d.Aspect == EndStates && d.What == podEnded },
	},
	{
		Reason: "an orphan that two owners select may go to either, with whatever labels it has",
		Match: func(d *Difference) bool {
			return d.Aspect == EndStates && d.What == "status.fullyLabeledReplicas"
		},
	},
	{
		Reason: "who leads is told by the Lease; kube-controller-manager says it by an event as well",
		Match: func(d *Difference) bool {
			return d.Aspect == Courses && d.What == string(Events) && d.Object == "Lease"
		},
	},
	{
		Reason: "a template that is replaced before the controller has seen it gets no ReplicaSet",
		Match: func(d *Difference) bool {
			return d.Aspect == Courses && d.What == string(Rollout) && sameOrder(strings.Split(d.Subject, ", "), strings.Split(d.Base, ", ")) ||
				d.Aspect == EndStates && strings.HasPrefix(d.Object, replicaSets) && d.Subject+d.Base == "asks for 0 pods"
		},
	},
	{
		Reason: "revisions count the templates that the controller has seen",
		Match: func(d *Difference) bool {
			return d.What == string(Revisions) || strings.HasPrefix(d.What, "metadata.annotations."+revisionAnnotation)
		},
	},
}

// Deliberate are the differences that ours is meant to have: weaknesses of
// upstream that it does not repeat.
var Deliberate = []Rule{}

// held are the verdicts of a guarantee that nothing was seen to break.
var held = []string{"pass", "idle"}

// passing reports whether a condition is one that a correct controller may have
// for a moment only.
func passing(condition string) bool {
	for _, prefix := range []string{"ReplicaFailure=", "Available=False ", "Progressing=True ", "Progressing=False ReplicaSetCreateError"} {
		if strings.HasPrefix(condition, prefix) {
			return true
		}
	}
	return false
}

// sameOrder reports whether what two sequences have in common is in one order.
func sameOrder(a, b []string) bool {
	in := func(others []string) func(string) bool {
		return func(s string) bool { return !slices.Contains(others, s) }
	}
	return slices.Equal(slices.DeleteFunc(slices.Clone(a), in(b)), slices.DeleteFunc(slices.Clone(b), in(a)))
}
