package compare

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// Rule describes differences between two runs that are allowed. Rules are in three tables:
// [Acceptable], [Deliberate] and [Incomparable]. The rule's table determines the classification of
// these differences.
type Rule struct {
	// Issue is the upstream issue that our controllers avoid, such as "kubernetes#104062". It is
	// empty if there is none.
	Issue string
	// Reason says why the difference is allowed. Reports show this text.
	Reason string
	// Match reports whether the rule can apply to a difference. It reads only the difference, not
	// the two runs.
	Match func(*Difference) bool
	// And is an optional second condition, which also reads the two runs. The rule allows a
	// difference only if Match and And return true. If And is nil, Match alone decides.
	And func(d *Difference, subject, base *Side) bool
}

// covers reports whether the rule allows a difference between two runs. Match must return true, and
// so must And unless And is nil.
func (r *Rule) covers(d *Difference, subject, base *Side) bool {
	return r.Match(d) && (r.And == nil || r.And(d, subject, base))
}

// Acceptable has the rules for differences in which the controllers of both runs behave correctly.
// For example, timing decides which pods are ready first. These differences have the classification
// Accepted.
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
		Reason: "the controller emits this event after the response to a write, and the run without the event may have lost the response or the event",
		Match: func(d *Difference) bool {
			return d.Aspect == MilestoneOrder && d.What == string(Events) && d.Subject+d.Base == "ScalingReplicaSet"
		},
		And: func(d *Difference, subject, base *Side) bool { return sideWithout(d, subject, base).lostAnswers },
	},
	{
		Reason: "after a connection error, the event client waits up to ten seconds before the next attempt, and sends later events only after this attempt",
		Match:  func(d *Difference) bool { return d.Aspect == MilestoneOrder && d.What == string(Events) },
		And:    func(d *Difference, subject, base *Side) bool { return sideWithout(d, subject, base).stalledEvents },
	},
	{
		Reason: "the controller changes the message of a condition only if the reason of the condition changes, so the message may name an earlier ReplicaSet",
		Match: func(d *Difference) bool {
			return d.Aspect == EndStates && d.What == "status.conditions[Progressing].message"
		},
		And: func(d *Difference, subject, base *Side) bool {
			return subject.mentionsReplicaSetOf(d.Object, d.Subject) && base.mentionsReplicaSetOf(d.Object, d.Base)
		},
	},
	{
		Reason: "the client may rate-limit, aggregate or lose events, and a failure event occurs only after a failure",
		Match: func(d *Difference) bool {
			return d.Aspect == MilestoneOrder && d.What == string(Events) && strings.HasPrefix(d.Subject+d.Base, "Failed")
		},
	},
	{
		Reason: "a condition that holds for a short time may fall between two status updates, and a failure condition occurs only after a failure",
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
		Reason: "the subject does not manage the pods of this owner; users and faults do",
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
		Reason: "Endpoints list pods that users created and that faults delete or fail at random; the check endpoints-exact compares the addresses with the pods of the run",
		Match:  func(d *Difference) bool { return d.Aspect == EndStates && strings.HasPrefix(d.What, "subsets[") },
		And: func(d *Difference, subject, base *Side) bool {
			return slices.Equal(subject.generatedAddresses(d.Object), base.generatedAddresses(d.Object))
		},
	},
	{
		Reason: "if two owners match an orphaned pod, either owner may adopt the pod, and orphaned pods have different labels",
		Match: func(d *Difference) bool {
			return d.Aspect == EndStates && d.What == "status.fullyLabeledReplicas"
		},
	},
	{
		Reason: "the Deployment controller creates no ReplicaSet for a pod template that was replaced before the controller observed the template",
		Match: func(d *Difference) bool {
			return d.Aspect == MilestoneOrder && d.What == string(Rollout) && inSameOrder(strings.Split(d.Subject, ", "), strings.Split(d.Base, ", ")) ||
				d.Aspect == EndStates && strings.HasPrefix(d.Object, replicaSets) && d.Subject+d.Base == "spec.replicas: 0"
		},
	},
	{
		Reason: "collisionCount grows if the controller's cache lacks the existing ReplicaSet of the pod template; the check revisions covers this case",
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
		Reason: "the conditions of a deleted owner depend on how long the owner existed",
		Match:  func(d *Difference) bool { return d.Aspect == MilestoneOrder && d.What == string(Conditions) },
		And: func(d *Difference, subject, base *Side) bool {
			owner := cmp.Or(deploymentOf(d.Object, subject, base), d.Object) // for a ReplicaSet, its Deployment, because an existing Deployment also deletes old ReplicaSets
			return subject.End[owner] == nil && base.End[owner] == nil
		},
	},
	{
		Reason: "the revision counts the pod templates that the controller observed, and the controller may miss a template that was soon replaced",
		Match: func(d *Difference) bool {
			return d.What == string(Revisions) || strings.HasPrefix(d.What, "metadata.annotations."+objects.RevisionAnnotation)
		},
	},
}

// Deliberate has the rules for differences that our controllers have on purpose, to avoid upstream
// issues. These differences have the classification Declared.
//
// The first rules are for the issues in [check.KnownIssues]. controllers/README.md describes the
// differences.
var Deliberate = append(knownIssueRules(), []Rule{
	{
		Issue:  "kubernetes#102551, kubernetes#128798",
		Reason: "our Deployment controller completes a scaling, and continues a Recreate rollout although failed pods exist",
		Match:  func(d *Difference) bool { return onlyBaseFails(d, "rollout-complete") },
	},
	{
		Issue:  "kubernetes#102551",
		Reason: "our Deployment controller updates the annotation max-replicas of a ReplicaSet even if the ReplicaSet keeps its size",
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
		Reason: "at its start, our Endpoints controller does not delete Endpoints of an existing Service that its cache lacks, and it does not drop a work queue key after 15 retries",
		Match:  func(d *Difference) bool { return onlyBaseFails(d, "endpoints-exact") },
	},
	{
		Issue:  "kubernetes#104062",
		Reason: "at its start, our Endpoints controller does not delete the Endpoints that a user created for a Service that its cache lacks",
		Match: func(d *Difference) bool {
			return d.Aspect == EndStates && strings.HasPrefix(d.Object, endpoints) && d.What == wholeObject && d.Subject == "exists"
		},
		And: func(d *Difference, subject, base *Side) bool {
			service := services + strings.TrimPrefix(d.Object, endpoints)
			isSelector := func(field string) bool { return strings.HasPrefix(field, "spec.selector") }
			return subject.End[service] != nil && base.End[service] != nil && !slices.ContainsFunc(slices.Collect(maps.Keys(base.End[service])), isSelector)
		},
	},
	{
		Issue:  "kubernetes#104062, kubernetes#45585",
		Reason: "our Endpoints controller deletes Endpoints only after a read from the API server, and never deletes leader-election records",
		Match:  func(d *Difference) bool { return onlyBaseFails(d, "orphan-endpoints") },
	},
}...)

// knownIssueRules returns one rule for each known upstream issue.
//
// The rule covers the checks that failed in the base run because of the issue. It also covers the
// end states of the affected objects.
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
					case e.check == "status": // a wrong status affects only the status of the object
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

// Incomparable has the rules for differences that exist because one run did not complete its
// workload. These differences have the classification NotCompared.
//
// A known upstream issue aborted that run at a step that the other run completed; see [Aborted].
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

// deploymentOf returns the stable name of the Deployment that owns a ReplicaSet. It returns "" if
// no Deployment owns the ReplicaSet. The argument name is the stable name of the ReplicaSet, or
// podsOf and this stable name. All these names are keys of Side.End, the objects at the end of a
// run.
func deploymentOf(name string, subject, base *Side) string {
	set := strings.TrimPrefix(name, podsOf)
	owner := cmp.Or(subject.names.ownerOf[set], base.names.ownerOf[set])
	if !strings.HasPrefix(owner, deployments) {
		return ""
	}
	return owner
}

// isSize reports whether a difference is the spec.replicas of a ReplicaSet, or a consequence of it.
// Consequences are differences in the status, the number of pods and the annotations that contain
// sizes. isSize also returns true if only one run has the ReplicaSet.
func isSize(d *Difference, subject, base *Side) bool {
	if set, ok := strings.CutPrefix(d.Object, podsOf); ok {
		return subject.End[set]["spec.replicas"] != base.End[set]["spec.replicas"]
	}
	key, annotated := strings.CutPrefix(d.What, "metadata.annotations.")
	counted := strings.HasPrefix(d.What, "status.") && strings.HasSuffix(strings.ToLower(d.What), "replicas")
	return d.What == wholeObject || d.What == "spec.replicas" || counted || annotated && sizeAnnotations[key]
}

// sideWithout returns the run in which a value is missing that the other run has. A rule can then
// find out why the value is missing. Exactly one of d.Subject and d.Base must be empty.
func sideWithout(d *Difference, subject, base *Side) *Side {
	if d.Subject == "" {
		return subject
	}
	return base
}

// mentionsReplicaSetOf reports whether a message contains the name of a Deployment or of one of its
// ReplicaSets. The argument text is the message, which comes from a condition of the Deployment.
// If the Deployment has no new ReplicaSet, the message names the Deployment instead.
func (s *Side) mentionsReplicaSetOf(deployment, text string) bool {
	if strings.Contains(text, fmt.Sprintf("Deployment %q", strings.TrimPrefix(deployment, deployments+" "))) {
		return true
	}
	return slices.ContainsFunc(s.Milestones[Milestone{Rollout, deployment}], func(set string) bool {
		return strings.Contains(text, strings.TrimPrefix(set, replicaSets+" "))
	})
}

// maxPods returns replicas + maxSurge of the Deployment that owns a ReplicaSet, as decimal text.
// The argument set is the ReplicaSet's stable name. The Deployment controller writes the returned
// number to the ReplicaSet's annotation max-replicas. The bool result is false if the run ended
// without that Deployment, or if maxSurge is invalid.
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

// userPodAddress matches the address of a pod that a user created, in a subset of Endpoints. Pods that controllers
// create have generated names, in place of which [names] has an asterisk.
var userPodAddress = regexp.MustCompile(`(addresses|notReadyAddresses)\[ip: <ip>; targetRef\.kind: Pod; targetRef\.name: [^;*]+; targetRef\.namespace: [^;]*\]: 1 times; `)

// generatedAddresses returns the subsets of Endpoints without the addresses of pods that users created, sorted. It leaves
// out the subsets that have no other addresses.
func (s *Side) generatedAddresses(object string) []string {
	var subsets []string
	for field, count := range s.End[object] {
		subset := userPodAddress.ReplaceAllString(field, "")
		if strings.HasPrefix(subset, "subsets[") && strings.Contains(strings.ToLower(subset), "addresses[") {
			subsets = append(subsets, subset+": "+count)
		}
	}
	slices.Sort(subsets)
	return subsets
}

// onlyBaseFails reports whether a check failed in the base run, but not in the run of the
// controllers under test. In the run of the controllers under test, the verdict must be pass or
// not-exercised. The argument id is the check's ID.
func onlyBaseFails(d *Difference, id string) bool {
	return d.Aspect == Verdicts && d.Object == id && d.Base == string(check.Fail) && slices.Contains(notViolated, d.Subject)
}

// notViolated has the verdicts of a check that found no violation of its guarantee.
var notViolated = []string{string(check.Pass), string(check.NotExercised)}

// isTransient reports whether a correct controller may set a condition of an object only briefly.
// One run may then miss the condition.
//
// The argument condition has the type, the status and the reason, such as "Progressing=True
// ReplicaSetUpdated". For Kinds that the default controllers do not reconcile, conditions with
// the status False or Unknown count as transient.
func isTransient(object, condition string) bool {
	prefixes := []string{"ReplicaFailure=", "Available=False ", "Progressing=True ", "Progressing=False ReplicaSetCreateError", "Progressing=Unknown "}
	if resource, _, _ := strings.Cut(object, " "); !slices.Contains(managedResources(), resource) {
		_, status, _ := strings.Cut(condition, "=")
		return strings.HasPrefix(status, "False ") || strings.HasPrefix(status, "Unknown ")
	}
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(condition, prefix) })
}

// inSameOrder reports whether the common values of a and b have the same order in each of them.
// For example, it returns true for "1 2 3" and "1 3".
func inSameOrder(a, b []string) bool {
	in := func(others []string) func(string) bool {
		return func(s string) bool { return !slices.Contains(others, s) }
	}
	return slices.Equal(slices.DeleteFunc(slices.Clone(a), in(b)), slices.DeleteFunc(slices.Clone(b), in(a)))
}
