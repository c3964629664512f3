package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// matchesTemplateCheck is the row of matches-template in All.
var matchesTemplateCheck = Check{
	ID:               "matches-template",
	Guarantee:        "A pod, or a ReplicaSet of a Deployment, is created as the template of its owner says, the ReplicaSet with the Deployment's annotations, and controlled by that owner alone.",
	Contract:         "ReplicaSet 11, Deployment 3, 19",
	Property:         Safety,
	AllowedBehaviors: []string{"cache-only-decisions"},
	New:              newMatchesTemplateChecker,
}

// matchesTemplateChecker: what a controller creates is what the template of its owner says,
// as the process was shown that at some time, and names the owner as its
// controller: pods of ReplicaSets and ReplicationControllers, and ReplicaSets of
// Deployments.
type matchesTemplateChecker struct{ findings }

func newMatchesTemplateChecker(Settings) Checker { return &matchesTemplateChecker{} }

// createdObject is something created for an owner.
type createdObject struct {
	kindName string // a pod or a ReplicaSet
	owner    history.Ref
	kind     string // of the owner
	object   *history.Object
	decoder  *decoder
	allowed  []desiredContent // of the owner, that the process was shown, the latest last
	// compare says in what the object is not as wished; "" if it is.
	compare func(*createdObject, desiredContent) string
}

// desiredContent is what an owner says of what is made for it.
type desiredContent struct {
	*template
	annotations map[string]string // of a ReplicaSet
}

func (checker *matchesTemplateChecker) Observe(m *Model, r *history.Record) {
	c := m.sent
	if c == nil || r.Request.Verb != "create" || r.Request.Object == nil {
		return
	}
	made := &createdObject{object: r.Request.Object, decoder: m.decoder}
	switch {
	case c.verb == callCreatePod && c.ownerState.owner() != nil:
		o := c.ownerState.owner()
		made.kindName, made.owner, made.kind = "pod", o.Ref, o.kind.name
		for _, each := range c.ownerState.templates {
			made.allowed = append(made.allowed, desiredContent{template: each})
		}
		made.compare = (*createdObject).podMismatch
	case c.scaling != nil && c.scaling.creates && len(c.rollout.deployments) > 0:
		for _, each := range c.rollout.deployments {
			made.allowed = append(made.allowed, desiredContent{each.value.template, each.value.annotations})
			made.owner = each.value.Ref
		}
		made.kindName, made.kind, made.compare = "ReplicaSet", deploymentKind, (*createdObject).replicaSetMismatch
	case r.Request.Resource == podResource && c.verb != callCreatePod:
		checker.reportUncontrolled(m, c, r.Request)
		return
	default:
		return
	}
	checker.exercised++
	problem := made.problem()
	if problem == "" {
		return
	}
	checker.addViolation(func() Evidence {
		return m.evidenceOf(&made.owner, fmt.Sprintf("%s %s/%s: %s created a %s %s",
			made.kind, made.owner.Namespace, made.owner.Name, c.process.name, made.kindName, problem),
			"what the template of its owner says, controlled by the owner")
	})
}

// reportUncontrolled notes a pod that is created for no owner of the subject's kinds.
func (checker *matchesTemplateChecker) reportUncontrolled(m *Model, c *call, r *history.Request) {
	checker.exercised++
	checker.addViolation(func() Evidence {
		return m.evidenceOf(requestRef(r), fmt.Sprintf("%s created a pod with the owners %+v", c.process.name, r.Object.Owners),
			"one that a ReplicaSet or a ReplicationController controls")
	})
}

// problem says what is wrong by the latest wish, if something is by each.
func (made *createdObject) problem() string {
	if problem := made.ownerMismatch(); problem != "" {
		return problem
	}
	problem := ""
	for _, each := range made.allowed {
		if problem = made.compare(made, each); problem == "" {
			return ""
		}
	}
	return problem
}

func (made *createdObject) ownerMismatch() string {
	if made.object.Namespace != "" && made.object.Namespace != made.owner.Namespace {
		return fmt.Sprintf("in namespace %s", made.object.Namespace)
	}
	want := history.Owner{Kind: made.kind, Name: made.owner.Name, UID: made.owner.UID, Controller: true}
	if len(made.object.Owners) != 1 || made.object.Owners[0] != want {
		return fmt.Sprintf("with the owners %+v, not %+v alone", made.object.Owners, want)
	}
	return ""
}

// longestName is how long a name may be at the most; one so long is taken without
// a dash behind it.
const longestName = 253

// podMismatch compares a pod with a template (contract ReplicaSet 11).
func (made *createdObject) podMismatch(as desiredContent) string {
	pod, want := made.object, as.pods
	containers := containersOf(pod)
	switch {
	case pod.GenerateName != made.owner.Name+"-" && len(made.owner.Name) < longestName:
		return fmt.Sprintf("named %q and what is generated, not %q", pod.GenerateName, made.owner.Name+"-")
	case !maps.Equal(pod.Labels, want.labels):
		return fmt.Sprintf("with the labels %v, not %v", pod.Labels, want.labels)
	case !maps.Equal(pod.Annotations, want.annotations):
		return fmt.Sprintf("with the annotations %v, not %v", pod.Annotations, want.annotations)
	case !slices.Equal(pod.Finalizers, want.finalizers):
		return fmt.Sprintf("with the finalizers %v, not %v", pod.Finalizers, want.finalizers)
	case !slices.Equal(containers, want.containers):
		return fmt.Sprintf("with the containers %v, not %v", containers, want.containers)
	}
	return ""
}

func containersOf(pod *history.Object) []container {
	var body struct {
		Spec struct{ Containers []container }
	}
	_ = unmarshalSome(pod.Body, &body) // the API server refuses what cannot be read
	return body.Spec.Containers
}

// replicaSetMismatch compares a ReplicaSet with a Deployment's template and annotations
// (contract Deployment 3, 19).
func (made *createdObject) replicaSetMismatch(as desiredContent) string {
	set, err := made.decoder.decodeOwner(kindByResource(replicaSetResource), made.object)
	if err != nil {
		return ""
	}
	hash := set.labels[hashLabel]
	selected, _ := set.selector.RequiresExactMatch(hashLabel)
	_, applied := made.object.Annotations[lastAppliedAnnotation]
	switch {
	case !set.template.same(as.template):
		return fmt.Sprintf("with the template %s, not %s", set.template.text, as.text)
	case !maps.Equal(set.annotations, as.annotations):
		return fmt.Sprintf("with the annotations %v of its Deployment, not %v", set.annotations, as.annotations)
	case applied:
		return "with the annotation " + lastAppliedAnnotation
	case hash == "" || set.template.hash != hash || selected != hash:
		return fmt.Sprintf("labelled %s=%q, whose pods are labelled %q and selected by %q", hashLabel, hash, set.template.hash, selected)
	case !strings.HasPrefix(made.object.Name, made.owner.Name+"-"):
		return fmt.Sprintf("named %q, not %s-HASH", made.object.Name, made.owner.Name)
	}
	return ""
}
