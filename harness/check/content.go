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

func newContent(Setting) Judge { return &contentJudge{} }

// making is something created for an owner.
type making struct {
	what      string // a pod or a ReplicaSet
	owner     history.Ref
	kind      string // of the owner
	object    *history.Object
	facts     *decoder
	templates []*template // that the process was shown of the owner, the latest last
	// wrong says in what the object is not what a template says; "" if it is.
	wrong func(*making, *template) string
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
		made.templates, made.wrong = c.ledger.templates, (*making).wrongPod
	case c.scaling != nil && c.scaling.creates && len(c.rollout.deployments) > 0:
		for _, each := range c.rollout.deployments {
			made.templates = append(made.templates, each.value.template)
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

// problem says what is wrong by the latest template, if something is by each.
func (made *making) problem() string {
	if problem := made.wrongOwner(); problem != "" {
		return problem
	}
	problem := ""
	for _, t := range made.templates {
		if problem = made.wrong(made, t); problem == "" {
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
func (made *making) wrongPod(t *template) string {
	pod, want := made.object, t.pods
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

// wrongSet compares a ReplicaSet with a Deployment's template (contract
// Deployment 3).
func (made *making) wrongSet(t *template) string {
	set, err := made.facts.decodeOwner(kindByResource(setResource), made.object)
	if err != nil {
		return ""
	}
	hash := set.labels[hashLabel]
	selected, _ := set.selector.RequiresExactMatch(hashLabel)
	switch {
	case !set.template.same(t):
		return fmt.Sprintf("with the template %s, not %s", set.template.text, t.text)
	case hash == "" || set.template.hash != hash || selected != hash:
		return fmt.Sprintf("labelled %s=%q, whose pods are labelled %q and selected by %q", hashLabel, hash, set.template.hash, selected)
	case !strings.HasPrefix(made.object.Name, made.owner.Name+"-"):
		return fmt.Sprintf("named %q, not %s-HASH", made.object.Name, made.owner.Name)
	}
	return ""
}
