package scenario

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/nearest"
)

// subresources lists the subresources that the API server serves for some kinds, such as Pod. The
// key is the name of the kind. For these kinds, a trigger must not wait for any other subresource.
var subresources = map[string][]string{
	kube.Pod:                   {"attach", "binding", "ephemeralcontainers", "eviction", "exec", "log", "portforward", "proxy", "resize", "status"},
	kube.ReplicaSet:            {"scale", "status"},
	kube.ReplicationController: {"scale", "status"},
	kube.Deployment:            {"scale", "status"},
	kube.Service:               {"proxy", "status"},
	kube.Endpoints:             {},
}

// CheckReachable returns the errors about triggers, faults and awaits that can never take effect. It
// returns nil if there are none, and also if the workload is invalid.
//
// A trigger can never match if it names subresources, owners or numbers of objects that cannot
// exist. It can also never match if its fault waits for itself, or if its step has passed. A fault can never act on objects or
// owners that cannot exist. A scenario with such a trigger or fault can run, but the fault has no
// effect. Therefore [Parse] does not call CheckReachable.
//
// A Service without a selector is never served, because the Endpoints controller ignores it. A step
// cannot create an object that exists, or publish a Service without ports.
func (s *Scenario) CheckReachable() error {
	v := &validator{scenario: s, kinds: s.GenericKinds(), resources: s.Resources(), observed: s.ObservedKinds()}
	if s.source != nil {
		v.earlier = s.source.mistakes // report no consequences of these errors
	}
	if v.workload(s.Workload); len(v.errs) > 0 || s.Invalid("workload") {
		return nil
	}
	for i, fault := range s.Faults {
		v.reachable(fmt.Sprintf("faults[%d].when", i), fault.When)
		v.reachable(fmt.Sprintf("faults[%d].until", i), fault.Until)
		v.stepOrder(fmt.Sprintf("faults[%d]", i), fault)
		at := fmt.Sprintf("faults[%d].%s", i, fault.Name)
		v.needs(at, fault)
		text := fault.Params.Text
		verb := text("verb")
		if fault.Name == "admission-denied" {
			verb = "create"
		}
		if fault.Name == "name-taken" && CheckOwner(text("owner")) == nil { // it takes the names of ReplicaSets
			v.controlled(at+".owner", "replicasets.apps", text("owner"))
		}
		v.canMatch(at, matcher{verb, text("resource"), text("namespace"), text("name"), text("owner")})
		if prefix := text("prefix"); prefix != "" { // of the names of pods
			v.mayExist(at+".prefix", prefix, Pod, prefix+"*")
		}
		v.podSelector(at, fault.Params)
		v.impossibleEdits(at+".steps", fault.Params.Steps())
		v.earlyEdits(at, fault)
	}
	v.circles()
	v.served()
	v.published()
	v.existing()
	v.conditions()
	v.paused()
	v.patches()
	v.metadata()
	v.defined()
	v.awaitTimes()
	return JoinErrors(v.errs...)
}

// reachable reports an error if a trigger can never match. It also checks the chain of triggers
// in the field after, which must match first.
func (v *validator) reachable(path string, t *Trigger) {
	for ; t != nil; t, path = t.After, path+".after" {
		switch {
		case t.Request != nil:
			v.subresource(path+".request.subresource", t.Request)
			v.canMatch(path+".request", matcher{verb: t.Request.Verb, resource: t.Request.Resource, name: t.Request.Name, owner: t.Request.Owner})
		case t.Event != nil:
			v.canMatch(path+".event", matcher{resource: t.Event.Resource, name: t.Event.Name, owner: t.Event.Owner})
		case t.State != nil:
			v.objectsExist(path+".state", matcher{resource: t.State.Resource, name: t.State.Name, owner: t.State.Owner})
			v.enoughObjects(path+".state", t.State)
		}
	}
}

// enoughObjects reports an error if a state trigger waits for more objects than the workload ever has.
func (v *validator) enoughObjects(path string, t *StateTrigger) {
	most, known := v.scenario.objectsMax(t.Resource, t.Name)
	kind, _ := kube.ByResource(t.Resource)
	v.check(!known || t.AtLeast == 0 || most > 0 || v.invalid(path+".name"), path+".resource",
		"found %s, so the trigger never matches, because the workload never has %s; expected another resource, or a step after which there is one", t.Resource, nearest.WithArticle(kind.Name))
	v.check(!known || t.AtLeast <= most || v.invalid(path+".name") || v.invalid(path+".resource"), path+".atLeast",
		"found %d%s, so the trigger never matches; expected at most %d, because the workload creates no more", t.AtLeast, of(t.Resource, "", t.Name, ""), most)
}

// CheckSubresource returns an error if the API server does not serve a subresource of a resource. It
// accepts any name for a resource of another kind than those that the scenarios use most.
func CheckSubresource(resource, found string) error {
	kind, _ := kube.ByResource(resource)
	expected, listed := subresources[kind.Name]
	switch {
	case found == "" || !listed || slices.Contains(expected, found):
		return nil
	case len(expected) == 0:
		return fmt.Errorf("found %q; expected none, because %s have no subresources", found, resource)
	}
	return fmt.Errorf("found %.60q; expected %s%s", found, nearest.List(expected, "or"), similar(found, expected))
}

// subresource reports an error if no request has the resource, the subresource and the verb of a
// trigger.
func (v *validator) subresource(path string, r *RequestTrigger) {
	for _, err := range []error{CheckSubresource(r.Resource, r.Subresource), CheckSubresourceVerb(r.Subresource, r.Verb)} {
		v.check(err == nil, path, "%w", err)
	}
}

// usersCreate reports whether objects may exist that no step of the workload creates. An external
// workload (a Go program), an operator or a create step of another user may create such objects.
func (s *Scenario) usersCreate() bool {
	return s.ExternalWorkload != nil || s.Operator != nil || len(s.userCreates()) > 0
}

// userCreates returns the create operations in the parameters of faults, such as of user-edit.
func (s *Scenario) userCreates() []*Create {
	var all []*Create
	for _, fault := range s.Faults {
		all = append(all, createsOf(fault.Params.Steps())...)
	}
	return all
}

// objectsMax returns the maximum number of objects that can exist at one time with this resource
// and name. A state trigger that waits for more objects can never match. objectsMax returns
// false if the maximum is not known.
func (s *Scenario) objectsMax(resource, name string) (int, bool) {
	if s.usersCreate() {
		return 0, false
	}
	kind, _ := kube.ByResource(resource)
	switch kind.Name {
	case kube.Pod: // a rolling update may double the pods of a Deployment
		scaled := slices.ContainsFunc(s.stepsOfOthers(), mayCreatePods)
		return 2 * s.PodsMax(), name == "" && len(s.GenericKinds()) == 0 && !scaled
	case kube.Deployment, kube.Service, kube.ReplicationController:
		return s.createdMax(Kind(kind.Name), name), true
	case kube.ReplicaSet:
		return s.createdMax(ReplicaSet, name), s.createdMax(Deployment, "") == 0
	}
	return 0, false
}

// createdMax returns the number of create steps in the workload that have the given kind and a
// matching name. The argument glob is a glob for the name; "" matches every name.
func (s *Scenario) createdMax(kind Kind, glob string) int {
	n := 0
	for _, create := range s.creates() {
		if matches, err := path.Match(glob, create.Name); create.Kind == kind && (matches || err != nil || glob == "") {
			n++
		}
	}
	return n
}

// owner reports an error if no object can be the owner that a trigger or a fault names. The argument
// owner is the text there, such as "ReplicaSet/web-*". The method checks names only for kinds whose
// objects create pods. It also reports an error if the kind is unknown and similar to a known kind.
//
// The method checks the name only if the argument ofWorkload is true: the owner is in the namespace of the workload.
func (v *validator) owner(at, owner string, ofWorkload bool) {
	kind, name, ok := strings.Cut(owner, "/")
	if !ok || strings.ContainsAny(kind, `*?[\`) {
		return
	}
	known := slices.Concat(owners, []Kind{Service})
	for _, created := range v.kinds {
		known = append(known, Kind(created.Name))
	}
	row, listed := kube.Named(kind)
	if !listed && !slices.Contains(known, Kind(kind)) {
		name, _, _ := strings.Cut(kind, ".") // a kind with its group
		suggestion := similarKind(name, known)
		if slices.Contains(known, Kind(name)) {
			suggestion = "; did you mean " + name + "?"
		}
		builtin := slices.ContainsFunc(scheme.Scheme.PrioritizedVersionsAllGroups(), func(version schema.GroupVersion) bool { return scheme.Scheme.Recognizes(version.WithKind(kind)) })
		possible := builtin || !v.scenario.onlyKnownWriters() || v.scenario.setsOwner(kind)
		v.check(suggestion == "" && possible, at, "found the unknown kind %q; expected the kind of an owner, such as ReplicaSet%s", kind, suggestion)
		return
	}
	if row.Role == kube.Workload && ofWorkload && !v.scenario.setsOwner(kind) {
		v.mayExist(at, owner, Kind(kind), name)
	}
}

// impossibleEdits reports an error for each step of another user that cannot succeed. Such a step changes or
// deletes an object that cannot exist, or creates one that exists. The argument at is the path of the steps, such as "faults[0].user-edit.steps".
func (v *validator) impossibleEdits(at string, steps []Step) {
	for i := range steps {
		target, acts := steps[i].Target()
		if !acts || target.Kind.IsGeneric() || len(validation.IsDNS1123Label(target.Name)) > 0 {
			continue
		}
		row := operationOf(steps[i].Operation)
		if name := fmt.Sprintf("%s[%d].%s.name", at, i, row.name); row.effect == creates {
			v.createdTwice(name, target)
		} else if !slices.ContainsFunc(append(v.scenario.creates(), v.scenario.userCreates()...), func(c *Create) bool { return c.Target == target }) {
			v.mayExist(name, target.String(), target.Kind, target.Name)
		}
	}
}

// circles reports an error for each cycle of faults that wait for each other. None of these faults can
// begin. The error is about the first fault of the cycle.
func (v *validator) circles() {
	reported := map[int]bool{} // the faults in the cycles so far
	for i := range v.scenario.Faults {
		for _, other := range waitsOf(v.scenario.Faults, i) {
			circle := map[int]bool{}
			if reported[i] || !v.waitsFor(other, i, circle) {
				continue
			}
			for fault := range circle { // fault i waits for each of them
				reported[fault] = reported[fault] || fault == i || v.waitsFor(fault, i, map[int]bool{})
			}
			v.check(false, fmt.Sprintf("faults[%d].when", i),
				"found a cycle of faults that wait for each other: faults[%d] waits for faults[%d], which waits for faults[%d], directly or through other faults; remove one of these triggers", i, other, i)
		}
	}
}

// waitsFor reports whether a fault can begin only after another fault has fired. The arguments
// fault and other are indexes in the scenario's list of faults. The argument seen has the faults
// that the search has visited.
func (v *validator) waitsFor(fault, other int, seen map[int]bool) bool {
	if seen[fault] || fault < 0 || fault >= len(v.scenario.Faults) {
		return false
	}
	seen[fault] = true
	return slices.ContainsFunc(waitsOf(v.scenario.Faults, fault), func(next int) bool {
		return next == other || v.waitsFor(next, other, seen)
	})
}

// waitsOf returns the indexes of the faults that must fire before the fault with the given index
// can begin.
func waitsOf(faults []Fault, index int) []int {
	var all []int
	for t := faults[index].When; t != nil; t = t.After {
		if t.Fault != nil && t.Fault.Index != index {
			all = append(all, t.Fault.Index)
		}
	}
	return all
}
