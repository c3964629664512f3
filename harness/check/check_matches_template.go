package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// matchesTemplateCheck demands that a controller creates pods and ReplicaSets from the template of
// their owner. It examines each create of a pod, and each create of a ReplicaSet for a Deployment.
//
// It skips a create if the owner of the new object is not in the cache of the process. But it
// always reports a pod that no ReplicaSet or ReplicationController controls.
var matchesTemplateCheck = Check{
	ID:               "matches-template",
	Guarantee:        "A controller creates each pod and each ReplicaSet from a version of its owner's template that was in its cache, with that owner as its only owner and controller. A new ReplicaSet has its Deployment's annotations and the pod-template-hash label.",
	Contract:         "ReplicaSet 11, Deployment 3, 19",
	Property:         Safety,
	Scope:            contractOf(kube.OwnsPods, kube.RollsOut),
	ExercisedWhen:    "The subject creates a pod or a ReplicaSet whose owner is in its cache, or a pod that no ReplicaSet or ReplicationController controls.",
	AllowedBehaviors: []string{"cache-only-decisions"},
	New:              newMatchesTemplateChecker,
}

// matchesTemplateChecker reports a created pod or ReplicaSet that differs from every cached
// version of its owner's template.
//
// The owner of a pod is a ReplicaSet or ReplicationController, and the owner of a
// ReplicaSet is a Deployment. For a pod, the checker compares the generateName, labels,
// annotations, finalizers and the spec. For a ReplicaSet, it compares the template, the annotations,
// minReadySeconds, the name and the label pod-template-hash.
type matchesTemplateChecker struct{ findings }

func newMatchesTemplateChecker(Settings) Checker { return &matchesTemplateChecker{} }

// createdObject is a pod or ReplicaSet that a process creates, together with the contents that
// its owner allows.
type createdObject struct {
	kindName string           // kind of the object for evidence: "pod" or "ReplicaSet"
	owner    history.Ref      // the owner for which the process creates the object
	kind     string           // kind of the owner
	request  *history.Request // the create; it contains the object
	decoder  *objects.Decoder
	allowed  []desiredContent // the content that each cached version of the owner requires, oldest first
	// compare returns a description of the difference between the object and one desired
	// content. It returns "" if the object matches.
	compare func(*createdObject, desiredContent) string
}

// desiredContent is the content that an object must have according to one cached version of
// its owner.
type desiredContent struct {
	*objects.Template
	annotations map[string]string // the Deployment's annotations, which a ReplicaSet must have; nil for pods
	minReady    time.Duration     // the Deployment's minReadySeconds, which a ReplicaSet must have; 0 for pods
}

func (checker *matchesTemplateChecker) Observe(m *Model, r *history.Record) {
	c := m.sent
	if c == nil || r.Request.Verb != "create" || r.Request.Object == nil {
		return
	}
	created := &createdObject{request: r.Request, decoder: m.decoder}
	switch {
	case c.verb == callCreatePod && c.ownerState.owner() != nil:
		o := c.ownerState.owner()
		created.kindName, created.owner, created.kind = "pod", o.Ref, o.Kind.Name
		for _, each := range c.ownerState.templates {
			created.allowed = append(created.allowed, desiredContent{Template: each})
		}
		created.compare = (*createdObject).podMismatch
	case c.scaling != nil && c.scaling.creates && len(c.rollout.deployments) > 0:
		for _, each := range c.rollout.deployments {
			created.allowed = append(created.allowed, desiredContent{each.value.Template, each.value.Annotations, each.value.MinReady})
			created.owner = each.value.Ref
		}
		created.kindName, created.kind, created.compare = "ReplicaSet", objects.DeploymentKind, (*createdObject).replicaSetMismatch
	case r.Request.Resource == objects.PodResource && c.verb != callCreatePod:
		checker.reportUncontrolled(m, c, r.Request)
		return
	default:
		return
	}
	checker.exercised++
	problem := created.problem()
	if problem == "" {
		return
	}
	checker.addViolation(func() Evidence {
		return m.evidenceOf(&created.owner, fmt.Sprintf("%s %s/%s: %s created a %s %s",
			created.kind, created.owner.Namespace, created.owner.Name, c.process.name, created.kindName, problem),
			"the content of the owner's template, and ownerReferences to this owner only")
	})
}

// reportUncontrolled reports the create of a pod that no ReplicaSet or
// ReplicationController controls.
func (checker *matchesTemplateChecker) reportUncontrolled(m *Model, c *call, r *history.Request) {
	checker.exercised++
	checker.addViolation(func() Evidence {
		return m.evidenceOf(requestRef(r), fmt.Sprintf("%s created a pod with ownerReferences %+v", c.process.name, r.Object.Owners),
			"a ReplicaSet or ReplicationController as the controller of the pod")
	})
}

// problem describes how the object differs from the content that its owner requires.
//
// The controller may have acted on any cached version of the owner. If the object matches one of
// them, the result is "". Otherwise the result describes the difference from the latest cached
// version.
func (created *createdObject) problem() string {
	if problem := created.ownerMismatch(); problem != "" {
		return problem
	}
	problem := ""
	for _, each := range created.allowed {
		if problem = created.compare(created, each); problem == "" {
			return ""
		}
	}
	return problem
}

// ownerMismatch describes a wrong namespace or wrong ownerReferences of the object. It returns
// "" if the namespace and the ownerReferences are right.
func (created *createdObject) ownerMismatch() string {
	if created.request.Object.Namespace != "" && created.request.Object.Namespace != created.owner.Namespace {
		return fmt.Sprintf("in namespace %s", created.request.Object.Namespace)
	}
	want := history.Owner{Kind: created.kind, Name: created.owner.Name, UID: created.owner.UID, Controller: true}
	if len(created.request.Object.Owners) != 1 || created.request.Object.Owners[0] != want {
		return fmt.Sprintf("with ownerReferences %+v, not only %+v", created.request.Object.Owners, want)
	}
	return ""
}

// nameLengthMax is the maximum length of an object's name. The generateName of a pod is the name of
// its owner and a dash. The controller omits the dash if the name of the owner already has the
// maximum length.
const nameLengthMax = 253

// podMismatch describes the first difference between the pod and its template (contract
// ReplicaSet 11). It returns "" if the pod matches.
func (created *createdObject) podMismatch(desired desiredContent) string {
	pod, want := created.request.Object, desired.Content
	switch {
	case pod.GenerateName != created.owner.Name+"-" && len(created.owner.Name) < nameLengthMax:
		return fmt.Sprintf("with generateName %q, not %q", pod.GenerateName, created.owner.Name+"-")
	case !maps.Equal(pod.Labels, want.Labels):
		return fmt.Sprintf("with labels %v, not %v", pod.Labels, want.Labels)
	case !maps.Equal(pod.Annotations, want.Annotations):
		return fmt.Sprintf("with annotations %v, not %v", pod.Annotations, want.Annotations)
	case !slices.Equal(pod.Finalizers, want.Finalizers):
		return fmt.Sprintf("with finalizers %v, not %v", pod.Finalizers, want.Finalizers)
	case created.request.PodSpec == nil: // an old history
		return ""
	}
	return specMismatch(objects.PodSpecFields(created.request.PodSpec), want.Spec)
}

// specMismatch describes the first difference between the spec of a pod and the spec of its template.
// The order of the fields is alphabetical. specMismatch returns "" if the two are equal.
func specMismatch(pod, template map[string]string) string {
	for _, path := range slices.Sorted(maps.Keys(template)) {
		if value, ok := pod[path]; !ok {
			return fmt.Sprintf("without spec.%s, which is %q in the template", objects.FieldName(path), template[path])
		} else if value != template[path] {
			return fmt.Sprintf("with spec.%s %q, not %q", objects.FieldName(path), value, template[path])
		}
	}
	for _, path := range slices.Sorted(maps.Keys(pod)) {
		if _, ok := template[path]; !ok {
			return fmt.Sprintf("with spec.%s %q, which is not in the template", objects.FieldName(path), pod[path])
		}
	}
	return ""
}

// replicaSetMismatch describes the first difference between a ReplicaSet and its Deployment's
// template and annotations (contract Deployment 3, 19). It returns "" if the ReplicaSet matches.
func (created *createdObject) replicaSetMismatch(desired desiredContent) string {
	set, err := created.decoder.DecodeOwner(objects.OwnerKindByResource(objects.ReplicaSetResource), created.request.Object)
	if err != nil {
		return ""
	}
	hash := set.Labels[objects.PodTemplateHashLabel]
	selected, _ := set.Selector.RequiresExactMatch(objects.PodTemplateHashLabel)
	_, applied := created.request.Object.Annotations[objects.LastAppliedAnnotation]
	switch {
	case !set.Template.Same(desired.Template):
		return fmt.Sprintf("with template %s, not %s", set.Template.Text, desired.Text)
	case !maps.Equal(set.Annotations, desired.annotations):
		return fmt.Sprintf("with annotations %v, but its Deployment has %v", set.Annotations, desired.annotations)
	case applied:
		return "with annotation " + objects.LastAppliedAnnotation
	case set.MinReady != desired.minReady:
		return fmt.Sprintf("with minReadySeconds %.0f, but its Deployment has %.0f", set.MinReady.Seconds(), desired.minReady.Seconds())
	case hash == "" || set.Template.Hash != hash || selected != hash:
		return fmt.Sprintf("with label %s=%q, but %q in its template and %q in its selector", objects.PodTemplateHashLabel, hash, set.Template.Hash, selected)
	case !strings.HasPrefix(created.request.Object.Name, created.owner.Name+"-"):
		return fmt.Sprintf("with name %q, not %s-<hash>", created.request.Object.Name, created.owner.Name)
	}
	return ""
}
