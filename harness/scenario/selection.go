package scenario

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/nearest"
)

// This file has the checks of [Scenario.CheckReachable] about the requests and objects that triggers and
// faults select.

// matcher has the fields with which a trigger or a fault selects requests or objects. An empty field
// selects all of them.
type matcher struct{ verb, resource, namespace, name, owner string }

// canMatch reports an error for each field of a matcher that no request or object can match. The
// argument at is the place of the trigger or the fault.
func (v *validator) canMatch(at string, s matcher) {
	v.resourceUsed(at, s.resource, s.verb)
	if CheckGlob(s.namespace) == nil {
		v.namespace(at+".namespace", s.namespace)
	}
	v.objectsExist(at, s)
}

// objectsExist reports an error if no object of the resource can have the name or the owner of a matcher.
func (v *validator) objectsExist(at string, s matcher) {
	ofWorkload := s.namespace == "" || s.namespace == workloadNamespace // other programs may create objects elsewhere
	if CheckGlob(s.owner) == nil && CheckOwner(s.owner) == nil {
		v.controlled(at+".owner", s.resource, s.owner)
		v.owner(at+".owner", s.owner, ofWorkload)
	}
	if kind, known := kube.ByResource(s.resource); known && ofWorkload && s.name != "" && kindsWithKnownNames[kind.Name] && CheckGlob(s.name) == nil {
		v.mayExist(at+".name", s.name, Kind(kind.Name), s.name)
	}
}

// kindsWithKnownNames has the kinds whose objects only the workload and its controllers create in a run.
var kindsWithKnownNames = map[string]bool{
	kube.Pod: true, kube.ReplicaSet: true, kube.ReplicationController: true, kube.Deployment: true, kube.Service: true,
	kube.Endpoints: true, "StatefulSet": true, "DaemonSet": true, "Job": true, "CronJob": true,
}

// onlyKnownWriters reports whether only the steps, the controllers of Kubernetes and the faults change objects. In other
// scenarios, a Go program or an operator may also do so. The kinds of an operator may come from its subject file.
func (s *Scenario) onlyKnownWriters() bool {
	return s.ExternalWorkload == nil && s.Operator == nil && !slices.ContainsFunc(append(s.creates(), s.userCreates()...), func(c *Create) bool {
		return c.Kind.IsGeneric() && !c.kubeKind().Builtin()
	})
}

// forOtherControllers is the advice of errors about what only an operator could do. The field makes the scenario valid.
const forOtherControllers = "the field operator: {} for other controllers"

// namespace reports an error if a namespace is a misspelled one of the run. A real cluster may have any other namespace.
func (v *validator) namespace(at, glob string) {
	if glob == "" || strings.ContainsAny(glob, `*?[\`) || !v.scenario.onlyKnownWriters() {
		return
	}
	known := slices.Clone(namespacesOfCluster)
	for _, create := range append(v.scenario.creates(), v.scenario.userCreates()...) {
		if create.Kind == "Namespace" {
			known = append(known, create.Name)
		}
	}
	suggestion := nearest.Suggestion(glob, known)
	v.check(suggestion == "" || slices.Contains(known, glob), at, "found %q, but no run has such a namespace; expected %s, which is the namespace of the workload%s",
		glob, workloadNamespace, suggestion)
}

// controlled reports an error if no object of the owner's kind controls objects of a resource. An
// example is a Deployment for pods, which its ReplicaSets control.
func (v *validator) controlled(at, resource, owner string) {
	kind, name, _ := strings.Cut(owner, "/")
	row, listed := kube.Named(kind)
	child, known := kube.ByResource(resource)
	if !listed || !known || !v.scenario.onlyKnownWriters() || slices.Contains(row.Controls, child.Name) || !controlsOnlyListedKinds(row) || v.scenario.setsOwner(kind) {
		return
	}
	var between, all []string // the kinds that control the resource
	for _, other := range kube.Kinds {
		if slices.Contains(other.Controls, child.Name) {
			all = append(all, other.Name)
			if slices.Contains(row.Controls, other.Name) {
				between = append(between, other.Name)
			}
		}
	}
	switch {
	case len(all) == 0:
		v.check(false, at, "found %q, but %s have no owner; use the field name instead, such as name: %s", owner, resource, name)
	case len(between) > 0:
		v.check(false, at, "found %q, but %s does not own %s itself; expected %s/%s-*", owner, nearest.WithArticle(kind), resource, between[0], strings.TrimRight(name, "-*"))
	default:
		v.check(false, at, "found %q, but %s does not own %s; expected an owner of the kind %s", owner, nearest.WithArticle(kind), resource, nearest.List(all, "or"))
	}
}

// controlsOnlyListedKinds reports whether objects of a kind only control objects of the kinds in [kube.Kind.Controls].
func controlsOnlyListedKinds(row kube.Kind) bool {
	return row.Role == kube.Workload || row.Name == kube.Service || row.Name == kube.Pod
}

// resourceUsed reports an error if no controller under test sends requests of a verb for a resource. Without a
// verb, the error is about any request. Every program may use resources such as nodes and configmaps.
func (v *validator) resourceUsed(at, resource, verb string) {
	kind, known := kube.ByResource(resource)
	if !known || kind.Role == kube.Other || !v.scenario.onlyKnownWriters() || v.invalid("subject.controllers") {
		return
	}
	var reads, writes, creates bool
	var all []string // the resources that the controllers use
	for _, c := range v.scenario.Controllers() {
		writes = writes || slices.Contains(c.Writes, kind.Name)
		creates = creates || slices.Contains(c.Writes, kind.Name) && c.Kind != kind.Name
		for _, name := range slices.Concat(c.Watches, c.Writes) {
			reads = reads || name == kind.Name
			row, _ := kube.Named(name)
			all = append(all, row.Resource())
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	v.check(reads, at+".resource", "found %s, which no controller under test uses; expected %s, another controller in subject.controllers, or %s", resource, strings.Join(all, ", "), forOtherControllers)
	if !v.scenario.source.has(at + ".verb") {
		at += ".resource"
	} else {
		at += ".verb"
	}
	switch {
	case !reads:
	case slices.Contains([]string{"create", "delete", "deletecollection"}, verb):
		v.check(creates, at, "found the verb %s for %s, which no controller under test %ss; expected another verb or resource", verb, resource, strings.TrimSuffix(verb, "collection"))
	case slices.Contains([]string{AnyWrite, "update", "patch"}, verb):
		v.check(writes, at, "found the verb %s for %s, which no controller under test writes; expected another verb or resource", verb, resource)
	}
}

// mayExist reports an error if no object of a kind can have a name that the glob matches. The
// argument found is the text about the object in the error.
func (v *validator) mayExist(at, found string, kind Kind, glob string) {
	possible, known := v.scenario.possibleNames(kind)
	reachable := slices.ContainsFunc(slices.Concat(possible, namesOfCluster[kind]), func(p string) bool { return mayMatch(glob, p) })
	expected := expectedNames(glob, possible)
	if nearest.Suggestion(glob, possible) == "" {
		expected += ", or " + forOtherControllers
	}
	v.check(!known || reachable, at, "found %q, but the workload has no such %s; expected %s", found, kind, expected)
}

// namesOfCluster has the names of objects that exist in every cluster, or in many.
var namesOfCluster = map[Kind][]string{Service: {"kubernetes", "kube-dns"}, Endpoints: {"kubernetes", "kube-dns"}}

// possibleNames returns the names that objects of a kind can have. A name that ends with * stands for
// all names with this prefix, such as those of the pods of a ReplicaSet. The result known is false if
// other programs may create objects, such as operators.
func (s *Scenario) possibleNames(kind Kind) (names []string, known bool) {
	if !s.onlyKnownWriters() {
		return nil, false
	}
	for _, create := range append(s.creates(), s.userCreates()...) {
		row, _ := kube.Named(string(create.Kind))
		switch {
		case create.Kind == kind:
			names = append(names, create.Names()...)
		case row.Role == kube.Workload:
			if controls(row, string(kind)) {
				prefix := create.Name + "-"
				names = append(names, prefix[:min(len(prefix), generateNameMax)]+"*")
			}
		case create.Kind == Service && kind == Endpoints:
			names = append(names, create.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), true
}

// generateNameMax is the maximum length of the prefix in a generated name. The API server cuts longer
// prefixes.
const generateNameMax = 58

// controls reports whether controllers create objects of a kind for an object of the kind owner. They
// may create objects of a third kind in between, such as the ReplicaSets of a Deployment.
func controls(owner kube.Kind, kind string) bool {
	return slices.ContainsFunc(owner.Controls, func(child string) bool {
		row, _ := kube.Named(child)
		return child == kind || controls(row, kind)
	})
}

// namesMax is the maximum number of names that an error lists.
const namesMax = 10

// expectedNames returns the names that objects of a kind can have, as one text for an error. Without
// names, it returns "one that a step creates". It suggests the name that is most similar to the name found.
func expectedNames(found string, possible []string) string {
	switch more := len(possible) - namesMax; {
	case len(possible) == 0:
		return "one that a step creates"
	case more > 0:
		return nearest.List(append(slices.Clone(possible[:namesMax]), fmt.Sprintf("one of %d more", more)), "or") + nearest.Suggestion(found, possible)
	}
	if len(possible) == 1 {
		return possible[0]
	}
	return nearest.List(possible, "or") + nearest.Suggestion(found, possible)
}

// mayMatch reports whether a glob can match a name. If the argument name ends with *, it stands
// for all names with this prefix. Generated names have no dot and no upper case after the prefix.
func mayMatch(glob, name string) bool {
	prefix, open := strings.CutSuffix(name, "*")
	if !open {
		matches, err := path.Match(glob, name)
		return matches || err != nil
	}
	literal, rest := glob, ""
	if i := strings.IndexAny(glob, `*?[\`); i >= 0 {
		literal, rest = glob[:i], glob[i:]
	}
	if suffix, long := strings.CutPrefix(literal, prefix); long {
		return generated(suffix + rest)
	}
	return rest != "" && strings.HasPrefix(prefix, literal)
}

// generated reports whether a glob may match the end of a generated name. Such an end has only lower-case letters,
// digits and hyphens. The function accepts every glob with a range or an escaped character.
func generated(glob string) bool {
	return strings.ContainsAny(glob, `[\`) || strings.Trim(glob, "abcdefghijklmnopqrstuvwxyz0123456789-*?") == ""
}
