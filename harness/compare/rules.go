package compare

import (
	"slices"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/check"
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
		Reason: "whether there is a surplus to be deleted on the way is a matter of timing",
		Match: func(d *Difference) bool {
			return d.Aspect == Courses && d.What == string(Events) && d.Subject+d.Base == "SuccessfulDelete"
		},
	},
	{
		Reason: "what becomes of pods that are not the subject's is the users' and the faults' doing",
		Match: func(d *Difference) bool {
			owner, ok := strings.CutPrefix(d.Object, podsOf)
			resource, _, _ := strings.Cut(owner, " ")
			return ok && owner != nobody && !slices.Contains([]string{replicaSets, controllers}, resource)
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
// upstream that it does not repeat. README lists what it does instead.
var Deliberate = []Rule{
	{
		Issue:  "kubernetes#102551, kubernetes#44734, kubernetes#128798",
		Reason: "a scaling event ends, proportional scaling is finished after a failure, and Recreate goes on though failed pods are left",
		Match:  func(d *Difference) bool { return spared(d, "rollout-complete") },
	},
	{
		Issue:  "kubernetes#104062",
		Reason: "Endpoints of a Service that is not yet in the cache are not deleted at the start, and no key is given up after 15 retries",
		Match:  func(d *Difference) bool { return spared(d, "endpoints-exact") },
	},
	{
		Issue:  "kubernetes#104062, kubernetes#45585",
		Reason: "Endpoints are deleted after a live look only, and leader-election records never",
		Match:  func(d *Difference) bool { return spared(d, "orphan-endpoints") },
	},
}

// spared reports whether the base alone breaks the guarantee of a check.
func spared(d *Difference, id string) bool {
	return d.Aspect == Verdicts && d.Object == id && d.Base == string(check.Fail) && slices.Contains(held, d.Subject)
}

// held are the verdicts of a guarantee that nothing was seen to break.
var held = []string{string(check.Pass), string(check.Idle)}

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
