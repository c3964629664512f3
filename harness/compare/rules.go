package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// Rule allows one kind of difference between two runs.
type Rule struct {
	// Issue is the upstream issue that our controllers avoid; empty if there is none.
	Issue  string
	Reason string
	Match  func(*Difference) bool
	// And is a condition on the two runs that must hold in addition to Match; nil if there
	// is none.
	And func(d *Difference, subject, base *Side) bool
}

// covers reports whether the rule allows a difference between two runs.
func (r *Rule) covers(d *Difference, subject, base *Side) bool {
	return r.Match(d) && (r.And == nil || r.And(d, subject, base))
}

// Acceptable has rules for differences that show no defect of either subject. The
// guarantees allow both orders, or both choices, that the runs show.
var Acceptable = []Rule{
	{
		Reason: "timing decides whether a run exercises a guarantee",
		Match: func(d *Difference) bool {
			return d.Aspect == Verdicts && slices.Contains(notViolated, d.Subject) && slices.Contains(notViolated, d.Base)
		},
	},
	{
		Reason: "the sizes of a ReplicaSet during a rollout depend on when its pods became ready",
		Match:  func(d *Difference) bool { return d.Aspect == MilestoneOrder && d.What == string(Sizes) },
	},
	{
		Reason: "a controller emits this event after the response to a write, and the response or the event was lost",
		Match: func(d *Difference) bool {
			return d.Aspect == MilestoneOrder && d.What == string(Events) && d.Subject+d.Base == "ScalingReplicaSet"
		},
		And: func(d *Difference, subject, base *Side) bool { return sideWithout(d, subject, base).lostAnswers },
	},
	{
		Reason: "the client retries an event after a connection error within ten seconds and delays the later events",
		Match:  func(d *Difference) bool { return d.Aspect == MilestoneOrder && d.What == string(Events) },
		And:    func(d *Difference, subject, base *Side) bool { return sideWithout(d, subject, base).stalledEvents },
	},
	{
		Reason: "the message of a condition dates from the last change of its reason, possibly for an earlier ReplicaSet",
		Match: func(d *Difference) bool {
			return d.Aspect == EndStates && d.What == "status.conditions[Progressing].message"
		},
		And: func(d *Difference, subject, base *Side) bool {
			return subject.mentionsReplicaSetOf(d.Object, d.Subject) && base.mentionsReplicaSetOf(d.Object, d.Base)
		},
	},
	{
		Reason: "events are rate-limited, aggregated and lost, and a failure event needs a failure",
		Match: func(d *Difference) bool {
			return d.Aspect == MilestoneOrder && d.What == string(Events) && strings.HasPrefix(d.Subject+d.Base, "Failed")
		},
	},
	{
		Reason: "a transient condition may come and go between two status updates, and a failure condition needs a failure",
		Match: func(d *Difference) bool {
			return d.Aspect == MilestoneOrder && d.What == string(Conditions) && isTransient(d.Object, d.Subject+d.Base)
		},
	},
	{
		Reason: "timing decides whether a controller has surplus pods to delete",
		Match: func(d *Difference) bool {
			return d.Aspect == MilestoneOrder && d.What == string(Events) && d.Subject+d.Base == "SuccessfulDelete"
		},
	},
	{
		Reason: "users and faults, not the subject, manage pods of other owners",
		Match: func(d *Difference) bool {
			owner, ok := strings.CutPrefix(d.Object, podsOf)
			return ok && owner != noOwner
		},
		And: func(d *Difference, subject, _ *Side) bool {
			resource, _, _ := strings.Cut(strings.TrimPrefix(d.Object, podsOf), " ")
			return !slices.Contains(subject.managed, resource)
		},
	},
	{
		Reason: "pods fail at random, and no controller deletes failed pods",
		Match:  func(d *Difference) bool { return d.Aspect == EndStates && d.What == podEnded },
	},
	{
		Reason: "either of two matching owners may adopt an orphan, and labels of orphans differ",
		Match: func(d *Difference) bool {
			return d.Aspect == EndStates && d.What == "status.fullyLabeledReplicas"
		},
	},
	{
		Reason: "a Deployment controller creates no ReplicaSet for a template that was replaced before it observed the template",
		Match: func(d *Difference) bool {
			return d.Aspect == MilestoneOrder && d.What == string(Rollout) && inSameOrder(strings.Split(d.Subject, ", "), strings.Split(d.Base, ", ")) ||
				d.Aspect == EndStates && strings.HasPrefix(d.Object, replicaSets) && d.Subject+d.Base == "spec.replicas: 0"
		},
	},
	{
		Reason: "collisionCount grows while the controller's cache lacks an existing ReplicaSet of the template; the check revisions covers it",
		Match: func(d *Difference) bool {
			return d.Aspect == EndStates && d.What == "status.collisionCount"
		},
	},
	{
		Reason: "a paused Deployment keeps the sizes that its ReplicaSets had when the controller observed the pause",
		Match:  func(d *Difference) bool { return d.Aspect == EndStates },
		And: func(d *Difference, subject, base *Side) bool {
			owner := deploymentOf(d.Object, subject, base)
			return isSize(d, subject, base) && subject.End[owner]["spec.paused"] == "true" && base.End[owner]["spec.paused"] == "true"
		},
	},
	{
		Reason: "the ReplicaSets that a deleted Deployment leaves depend on the progress of its rollout",
		Match:  func(d *Difference) bool { return d.Aspect == EndStates },
		And: func(d *Difference, subject, base *Side) bool {
			owner := deploymentOf(d.Object, subject, base)
			return owner != "" && subject.End[owner] == nil && base.End[owner] == nil && isSize(d, subject, base)
		},
	},
	{
		Reason: "the conditions of a deleted owner depend on how long it existed",
		Match:  func(d *Difference) bool { return d.Aspect == MilestoneOrder && d.What == string(Conditions) },
		And: func(d *Difference, subject, base *Side) bool {
			owner := cmp.Or(deploymentOf(d.Object, subject, base), d.Object) // this Deployment deletes old ReplicaSets
			return subject.End[owner] == nil && base.End[owner] == nil
		},
	},
	{
		Reason: "revisions count the templates that the controller observed",
		Match: func(d *Difference) bool {
			return d.What == string(Revisions) || strings.HasPrefix(d.What, "metadata.annotations."+objects.RevisionAnnotation)
		},
	},
}

// Deliberate has rules for the deliberate differences of our controllers, which avoid
// upstream issues. The rules for issues that checks recognize come first.
// controllers/README.md lists the differences.
var Deliberate = append(knownIssueRules(), []Rule{
	{
		Issue:  "kubernetes#102551, kubernetes#128798",
		Reason: "in ours a scaling event completes, and Recreate continues although failed pods exist",
		Match:  func(d *Difference) bool { return onlyBaseFails(d, "rollout-complete") },
	},
	{
		Issue:  "kubernetes#102551",
		Reason: "ours updates the max-replicas annotation of a ReplicaSet even if the ReplicaSet keeps its size",
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
		Reason: "at its start ours does not delete Endpoints of a Service that is missing in its cache, and it never drops a key after 15 retries",
		Match:  func(d *Difference) bool { return onlyBaseFails(d, "endpoints-exact") },
	},
	{
		Issue:  "kubernetes#104062, kubernetes#45585",
		Reason: "ours deletes Endpoints only after a live read, and never deletes leader-election records",
		Match:  func(d *Difference) bool { return onlyBaseFails(d, "orphan-endpoints") },
	},
}...)

// knownIssueRules returns a rule for each known upstream issue. The rule covers the
// verdicts of the checks that the issue violates, and the end states of the affected
// objects.
func knownIssueRules() []Rule {
	var rules []Rule
	for _, issue := range check.KnownIssues {
		rules = append(rules, Rule{
			Reason: issue.String(), // the text names the upstream issue
			Match: func(d *Difference) bool {
				return d.Aspect == EndStates || d.Aspect == Verdicts && slices.Contains(notViolated, d.Subject)
			},
			And: func(d *Difference, subject, base *Side) bool {
				return slices.ContainsFunc(knownFailures(base.Results), func(e knownFailure) bool {
					switch {
					case e.issue != issue:
						return false
					case d.Aspect == Verdicts:
						return e.check == d.Object
					case e.check == "status": // no other object depends on the status
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

// Incomparable has rules for differences that follow from an aborted workload. A known
// upstream issue aborted one workload before the other; see [Aborted].
var Incomparable = []Rule{
	{
		Reason: "the end state depends on steps that only one run completed",
		Match:  func(d *Difference) bool { return d.Aspect == EndStates },
		And:    dependsOnMissingSteps,
	},
	{
		Reason: "milestones are compared only up to the step at which one run was aborted",
		Match:  func(d *Difference) bool { return d.Aspect == MilestoneOrder },
		And:    followsMissingSteps,
	},
}

// deploymentOf returns the Deployment that owns the ReplicaSet with a stable name. For a
// name that stands for pods, it returns the Deployment that owns the pods' ReplicaSet. It
// returns "" if there is none.
func deploymentOf(name string, subject, base *Side) string {
	set := strings.TrimPrefix(name, podsOf)
	owner := cmp.Or(subject.names.ownerOf[set], base.names.ownerOf[set])
	if !strings.HasPrefix(owner, deployments) {
		return ""
	}
	return owner
}

// isSize reports whether a difference is the size of a ReplicaSet, or a consequence of that
// size. The status and the pods of the ReplicaSet are such consequences.
func isSize(d *Difference, subject, base *Side) bool {
	if set, ok := strings.CutPrefix(d.Object, podsOf); ok {
		return subject.End[set]["spec.replicas"] != base.End[set]["spec.replicas"]
	}
	key, annotated := strings.CutPrefix(d.What, "metadata.annotations.")
	counted := strings.HasPrefix(d.What, "status.") && strings.HasSuffix(strings.ToLower(d.What), "replicas")
	return d.What == wholeObject || d.What == "spec.replicas" || counted || annotated && sizeAnnotations[key]
}

// sideWithout returns the side on which the value of the difference is missing.
func sideWithout(d *Difference, subject, base *Side) *Side {
	if d.Subject == "" {
		return subject
	}
	return base
}

// mentionsReplicaSetOf reports whether a text names a Deployment or one of its ReplicaSets.
// The Deployment counts because conditions name it while it has no ReplicaSet.
func (s *Side) mentionsReplicaSetOf(deployment, text string) bool {
	if strings.Contains(text, fmt.Sprintf("Deployment %q", strings.TrimPrefix(deployment, deployments+" "))) {
		return true
	}
	return slices.ContainsFunc(s.Milestones[Milestone{Rollout, deployment}], func(set string) bool {
		return strings.Contains(text, strings.TrimPrefix(set, replicaSets+" "))
	})
}

// maxPods returns replicas + maxSurge of the Deployment that owns a ReplicaSet. It returns
// false if the Deployment was deleted.
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

// onlyBaseFails reports whether only the base violates the guarantee of a check.
func onlyBaseFails(d *Difference, id string) bool {
	return d.Aspect == Verdicts && d.Object == id && d.Base == string(check.Fail) && slices.Contains(notViolated, d.Subject)
}

// notViolated lists the verdicts of a check whose guarantee the run did not violate.
var notViolated = []string{string(check.Pass), string(check.NotExercised)}

// isTransient reports whether a condition of an object may hold only briefly in a run with a
// correct controller. For a kind without a contract, these are all conditions that are not
// True.
func isTransient(object, condition string) bool {
	prefixes := []string{"ReplicaFailure=", "Available=False ", "Progressing=True ", "Progressing=False ReplicaSetCreateError", "Progressing=Unknown "}
	if resource, _, _ := strings.Cut(object, " "); !slices.Contains(managedResources(), resource) {
		_, status, _ := strings.Cut(condition, "=")
		return strings.HasPrefix(status, "False ") || strings.HasPrefix(status, "Unknown ")
	}
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(condition, prefix) })
}

// inSameOrder reports whether the elements that occur in both sequences have the same order
// in both.
func inSameOrder(a, b []string) bool {
	in := func(others []string) func(string) bool {
		return func(s string) bool { return !slices.Contains(others, s) }
	}
	return slices.Equal(slices.DeleteFunc(slices.Clone(a), in(b)), slices.DeleteFunc(slices.Clone(b), in(a)))
}
