package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kube-gauntlet/gauntlet/harness/check"
)

// Rule says of a kind of difference why it may be.
type Rule struct {
	// Issue is where upstream has on record what ours is meant to do otherwise; empty
	// if that is not known, and for what either subject may do.
	Issue  string
	Reason string
	Match  func(*Difference) bool
	// And is what the two runs must show besides; nil is nothing.
	And func(d *Difference, subject, base *Side) bool
}

// covers reports whether a difference between two runs is of the rule's kind.
func (r *Rule) covers(d *Difference, subject, base *Side) bool {
	return r.Match(d) && (r.And == nil || r.And(d, subject, base))
}

// Acceptable are the differences that say nothing of either subject. Each is a
// reordering or a choice that the guarantees allow.
var Acceptable = []Rule{
	{
		Reason: "what a check is put to depends on timing",
		Match: func(d *Difference) bool {
			return d.Aspect == Verdicts && slices.Contains(notViolated, d.Subject) && slices.Contains(notViolated, d.Base)
		},
	},
	{
		Reason: "how far a ReplicaSet was scaled at a time depends on when its pods were ready",
		Match:  func(d *Difference) bool { return d.Aspect == MilestoneOrder && d.What == string(Sizes) },
	},
	{
		Reason: "an event about a write needs the write to be answered, and answers are lost, as are events",
		Match: func(d *Difference) bool {
			return d.Aspect == MilestoneOrder && d.What == string(Events) && d.Subject+d.Base == "ScalingReplicaSet"
		},
		And: func(d *Difference, subject, base *Side) bool { return sideWithout(d, subject, base).lostAnswers },
	},
	{
		Reason: "an event whose connection breaks is tried again after up to ten seconds, and those behind it wait",
		Match:  func(d *Difference) bool { return d.Aspect == MilestoneOrder && d.What == string(Events) },
		And:    func(d *Difference, subject, base *Side) bool { return sideWithout(d, subject, base).stalledEvents },
	},
	{
		Reason: "the message of a condition is of when its reason last changed, which may have been for an earlier ReplicaSet",
		Match: func(d *Difference) bool {
			return d.Aspect == EndStates && d.What == "status.conditions[Progressing].message"
		},
		And: func(d *Difference, subject, base *Side) bool {
			return subject.mentionsReplicaSetOf(d.Object, d.Subject) && base.mentionsReplicaSetOf(d.Object, d.Base)
		},
	},
	{
		Reason: "events are rate-limited, aggregated and lost; one about a failure needs the failure to happen",
		Match: func(d *Difference) bool {
			return d.Aspect == MilestoneOrder && d.What == string(Events) && strings.HasPrefix(d.Subject+d.Base, "Failed")
		},
	},
	{
		Reason: "a condition that comes and goes may do so between two status writes; one of a failure needs the failure to happen",
		Match: func(d *Difference) bool {
			return d.Aspect == MilestoneOrder && d.What == string(Conditions) && isTransient(d.Subject+d.Base)
		},
	},
	{
		Reason: "whether there is a surplus to be deleted on the way is a matter of timing",
		Match: func(d *Difference) bool {
			return d.Aspect == MilestoneOrder && d.What == string(Events) && d.Subject+d.Base == "SuccessfulDelete"
		},
	},
	{
		Reason: "what becomes of pods that are not the subject's is the users' and the faults' doing",
		Match: func(d *Difference) bool {
			owner, ok := strings.CutPrefix(d.Object, podsOf)
			resource, _, _ := strings.Cut(owner, " ")
			return ok && owner != noOwner && !slices.Contains([]string{replicaSets, controllers}, resource)
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
		Reason: "a template that is replaced before the controller has seen it gets no ReplicaSet",
		Match: func(d *Difference) bool {
			return d.Aspect == MilestoneOrder && d.What == string(Rollout) && inSameOrder(strings.Split(d.Subject, ", "), strings.Split(d.Base, ", ")) ||
				d.Aspect == EndStates && strings.HasPrefix(d.Object, replicaSets) && d.Subject+d.Base == "asks for 0 pods"
		},
	},
	{
		Reason: "a Deployment collides with a ReplicaSet of its template as long as it has not seen that this is nobody's; the check revisions asks whether it did",
		Match: func(d *Difference) bool {
			return d.Aspect == EndStates && d.What == "status.collisionCount"
		},
	},
	{
		Reason: "a Deployment that is paused to the end keeps the sizes that its ReplicaSets had when the controller saw that it was",
		Match:  func(d *Difference) bool { return d.Aspect == EndStates },
		And: func(d *Difference, subject, base *Side) bool {
			owner := deploymentOf(d.Object, subject, base)
			return isSize(d, subject, base) && subject.End[owner]["spec.paused"] == "true" && base.End[owner]["spec.paused"] == "true"
		},
	},
	{
		Reason: "which ReplicaSets of what sizes a Deployment leaves behind that is gone depends on how far it had come",
		Match:  func(d *Difference) bool { return d.Aspect == EndStates },
		And: func(d *Difference, subject, base *Side) bool {
			owner := deploymentOf(d.Object, subject, base)
			return owner != "" && subject.End[owner] == nil && base.End[owner] == nil && isSize(d, subject, base)
		},
	},
	{
		Reason: "which conditions an owner comes to have that is gone at the end depends on how long it was there",
		Match:  func(d *Difference) bool { return d.Aspect == MilestoneOrder && d.What == string(Conditions) },
		And: func(d *Difference, subject, base *Side) bool {
			owner := cmp.Or(deploymentOf(d.Object, subject, base), d.Object) // which trims its history while it is there
			return subject.End[owner] == nil && base.End[owner] == nil
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
// upstream that it does not repeat, first those that checks recognise. README lists
// what it does instead.
var Deliberate = append(knownIssueRules(), []Rule{
	{
		Issue:  "kubernetes#102551, kubernetes#128798",
		Reason: "a scaling event ends, and Recreate goes on though failed pods are left",
		Match:  func(d *Difference) bool { return onlyBaseFails(d, "rollout-complete") },
	},
	{
		Issue:  "kubernetes#102551",
		Reason: "a ReplicaSet that keeps its size when a Deployment is resized or its surge changes says what for it has it",
		Match: func(d *Difference) bool {
			return d.Aspect == EndStates && strings.HasPrefix(d.Object, replicaSets) && d.What == "metadata.annotations.deployment.kubernetes.io/max-replicas"
		},
		And: func(d *Difference, subject, _ *Side) bool {
			most, known := subject.maxPods(d.Object)
			return !known || d.Subject == most
		},
	},
	{
		Issue:  "kubernetes#104062",
		Reason: "Endpoints of a Service that is not yet in the cache are not deleted at the start, and no key is given up after 15 retries",
		Match:  func(d *Difference) bool { return onlyBaseFails(d, "endpoints-exact") },
	},
	{
		Issue:  "kubernetes#104062, kubernetes#45585",
		Reason: "Endpoints are deleted after a live look only, and leader-election records never",
		Match:  func(d *Difference) bool { return onlyBaseFails(d, "orphan-endpoints") },
	},
}...)

// knownIssueRules is a rule for each weakness that upstream's runs are excused for: of the
// checks that it breaks, and of the ends of the objects that show it.
func knownIssueRules() []Rule {
	var rules []Rule
	for _, w := range check.KnownIssues {
		rules = append(rules, Rule{
			Reason: w.String(), // which has its issue
			Match: func(d *Difference) bool {
				return d.Aspect == EndStates || d.Aspect == Verdicts && slices.Contains(notViolated, d.Subject)
			},
			And: func(d *Difference, subject, base *Side) bool {
				return slices.ContainsFunc(knownFailures(base.Results), func(e knownFailure) bool {
					switch {
					case e.issue != w:
						return false
					case d.Aspect == Verdicts:
						return e.check == d.Object
					case e.check == "status": // nothing goes by it
						return base.isNameOf(d.Object, e.object) && strings.HasPrefix(d.What, "status")
					default:
						return base.isOrIsOwnedBy(d.Object, e.object, subject)
					}
				})
			},
		})
	}
	return rules
}

// Incomparable are the differences that come of a run's having been broken off, by a
// weakness that upstream is known for, before the other: see [BrokenOff].
var Incomparable = []Rule{
	{
		Reason: "what the objects are at the end depends on the steps that one run did not come to",
		Match:  func(d *Difference) bool { return d.Aspect == EndStates },
		And:    dependsOnMissingSteps,
	},
	{
		Reason: "what happens on the way is compared up to the step with which one run was broken off",
		Match:  func(d *Difference) bool { return d.Aspect == MilestoneOrder },
		And:    followsMissingSteps,
	},
}

// deploymentOf is the Deployment that had a ReplicaSet first, or the ReplicaSet of pods;
// empty if the name stands for nothing of a Deployment's.
func deploymentOf(name string, subject, base *Side) string {
	set := strings.TrimPrefix(name, podsOf)
	owner := cmp.Or(subject.names.ownerOf[set], base.names.ownerOf[set])
	if !strings.HasPrefix(owner, deployments) {
		return ""
	}
	return owner
}

// isSize reports whether a difference is of how large a ReplicaSet is, and of what
// follows from that.
func isSize(d *Difference, subject, base *Side) bool {
	if set, ok := strings.CutPrefix(d.Object, podsOf); ok {
		return subject.End[set]["spec.replicas"] != base.End[set]["spec.replicas"]
	}
	key, annotated := strings.CutPrefix(d.What, "metadata.annotations.")
	counted := strings.HasPrefix(d.What, "status.") && strings.HasSuffix(strings.ToLower(d.What), "replicas")
	return d.What == wholeObject || d.What == "spec.replicas" || counted || annotated && sizeAnnotations[key]
}

// sideWithout is the side that lacks what the other has.
func sideWithout(d *Difference, subject, base *Side) *Side {
	if d.Subject == "" {
		return subject
	}
	return base
}

// mentionsReplicaSetOf reports whether a text names a ReplicaSet that a Deployment has had, or the
// Deployment itself, as conditions do while it has none.
func (s *Side) mentionsReplicaSetOf(deployment, text string) bool {
	if strings.Contains(text, fmt.Sprintf("Deployment %q", strings.TrimPrefix(deployment, deployments+" "))) {
		return true
	}
	return slices.ContainsFunc(s.Milestones[Milestone{Rollout, deployment}], func(set string) bool {
		return strings.Contains(text, strings.TrimPrefix(set, replicaSets+" "))
	})
}

// maxPods is how many pods the Deployment of a ReplicaSet may have at the end, surge
// included; it is not known of one that is not there any more.
func (s *Side) maxPods(set string) (string, bool) {
	owner, _, _ := strings.Cut(s.End[set]["metadata.ownerReferences[Deployment]"], " ")
	deployment := s.End[deployments+" "+owner]
	replicas, err := strconv.Atoi(deployment["spec.replicas"])
	if err != nil {
		return "", false
	}
	surge := 0
	if text, ok := deployment["spec.strategy.rollingUpdate.maxSurge"]; ok {
		value := intstr.Parse(text)
		if surge, err = intstr.GetScaledValueFromIntOrPercent(&value, replicas, true); err != nil {
			return "", false
		}
	}
	return strconv.Itoa(replicas + surge), true
}

// onlyBaseFails reports whether the base alone breaks the guarantee of a check.
func onlyBaseFails(d *Difference, id string) bool {
	return d.Aspect == Verdicts && d.Object == id && d.Base == string(check.Fail) && slices.Contains(notViolated, d.Subject)
}

// notViolated are the verdicts of a guarantee that nothing was seen to break.
var notViolated = []string{string(check.Pass), string(check.NotExercised)}

// isTransient reports whether a condition is one that a correct controller may have
// for a moment only.
func isTransient(condition string) bool {
	for _, prefix := range []string{"ReplicaFailure=", "Available=False ", "Progressing=True ", "Progressing=False ReplicaSetCreateError", "Progressing=Unknown "} {
		if strings.HasPrefix(condition, prefix) {
			return true
		}
	}
	return false
}

// inSameOrder reports whether what two sequences have in common is in one order.
func inSameOrder(a, b []string) bool {
	in := func(others []string) func(string) bool {
		return func(s string) bool { return !slices.Contains(others, s) }
	}
	return slices.Equal(slices.DeleteFunc(slices.Clone(a), in(b)), slices.DeleteFunc(slices.Clone(b), in(a)))
}
