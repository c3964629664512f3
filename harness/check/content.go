package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// contentJudge: what a controller creates is what the template of its owner says,
// as the process was shown that at some time, and names the owner as its
// controller: pods of ReplicaSets and ReplicationControllers, and ReplicaSets of
// Deployments.
type contentJudge struct{ findings }

func newContent(Settings) Checker { return &contentJudge{} }

// making is something created for an owner.
type making struct {
	what   string // a pod or a ReplicaSet
	owner  history.Ref
	kind   string // of the owner
	object *history.Object
	facts  *decoder
	wishes []wish // of the owner, that the process was shown, the latest last
	// wrong says in what the object is not as wished; "" if it is.
	wrong func(*making, wish) string
}

// wish is what an owner says of what is made for it.
type wish struct {
	*template
	annotations map[string]string // of a ReplicaSet
}

func (j *contentJudge) Observe(m *Model, r *history.Record) {
	c := m.sent
	if c == nil || r.Request.Verb != "create" || r.Request.Object == nil {
		return
	}
	made := &making{object: r.Request.Object, facts: m.facts}
	switch {
	case c.verb == callCreate && c.ledger.owner() != nil:
		o := c.ledger.owner()
		made.what, made.owner, made.kind = "pod", o.Ref, o.kind.name
		for _, each := range c.ledger.templates {
			made.wishes = append(made.wishes, wish{template: each})
		}
		made.wrong = (*making).wrongPod
	case c.scaling != nil && c.scaling.creates && len(c.rollout.deployments) > 0:
		for _, each := range c.rollout.deployments {
			made.wishes = append(made.wishes, wish{each.value.template, each.value.annotations})
			made.owner = each.value.Ref
		}
		made.what, made.kind, made.wrong = "ReplicaSet", deploymentKind, (*making).wrongSet
	case r.Request.Resource == podResource && c.verb != callCreate:
		j.nobodys(m, c, r.Request)
		return
	default:
		return
	}
	j.tested++
	problem := made.problem()
	if problem == "" {
		return
	}
	j.violate(func() Evidence {
		return m.evidenceOf(&made.owner, fmt.Sprintf("%s %s/%s: %s created a %s %s",
			made.kind, made.owner.Namespace, made.owner.Name, c.process.name, made.what, problem),
			"what the template of its owner says, controlled by the owner")
	})
}

// nobodys notes a pod that is created for no owner of the subject's kinds.
func (j *contentJudge) nobodys(m *Model, c *call, r *history.Request) {
	j.tested++
	j.violate(func() Evidence {
		return m.evidenceOf(refOf(r), fmt.Sprintf("%s created a pod with the owners %+v", c.process.name, r.Object.Owners),
			"one that a ReplicaSet or a ReplicationController controls")
	})
}

// problem says what is wrong by the latest wish, if something is by each.
func (made *making) problem() string {
	if problem := made.wrongOwner(); problem != "" {
		return problem
	}
	problem := ""
	for _, each := range made.wishes {
		if problem = made.wrong(made, each); problem == "" {
			return ""
		}
	}
	return problem
}

func (made *making) wrongOwner() string {
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

// wrongPod compares a pod with a template (contract ReplicaSet 11).
func (made *making) wrongPod(as wish) string {
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

// wrongSet compares a ReplicaSet with a Deployment's template and annotations
// (contract Deployment 3, 19).
func (made *making) wrongSet(as wish) string {
	set, err := made.facts.decodeOwner(kindByResource(setResource), made.object)
	if err != nil {
		return ""
	}
	hash := set.labels[hashLabel]
	selected, _ := set.selector.RequiresExactMatch(hashLabel)
	_, applied := made.object.Annotations[appliedAnnotation]
	switch {
	case !set.template.same(as.template):
		return fmt.Sprintf("with the template %s, not %s", set.template.text, as.text)
	case !maps.Equal(set.annotations, as.annotations):
		return fmt.Sprintf("with the annotations %v of its Deployment, not %v", set.annotations, as.annotations)
	case applied:
		return "with the annotation " + appliedAnnotation
	case hash == "" || set.template.hash != hash || selected != hash:
		return fmt.Sprintf("labelled %s=%q, whose pods are labelled %q and selected by %q", hashLabel, hash, set.template.hash, selected)
	case !strings.HasPrefix(made.object.Name, made.owner.Name+"-"):
		return fmt.Sprintf("named %q, not %s-HASH", made.object.Name, made.owner.Name)
	}
	return ""
}
