package scenario

import (
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// Verbs is the list of API verbs that a fault or a trigger of a scenario may name.
var Verbs = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}

// Resources is the list of resources that every scenario may name, such as pods or
// deployments.apps. Any other name is an error, because a fault with a misspelled resource would
// have no effect.
//
// A scenario may also name the resources of its generic kinds, such as custom resources; see
// [Scenario.Resources] and [Params.Resources].
var Resources = kube.Resources()

// ResourceAdvice returns what to write instead of a resource that has another form, such as rs, pods/status or apps/deployments.
// It returns "" if the text has no such form.
func ResourceAdvice(found string) string {
	resource, subresource, divided := strings.Cut(found, "/")
	for _, kind := range kube.Kinds {
		plural, _, _ := strings.Cut(kind.Resource(), ".")
		switch {
		case found != "" && found == kind.ShortName, strings.EqualFold(found, kind.Name), found == plural && found != kind.Resource():
			return "expected " + kind.Resource()
		case divided && resource == kind.Resource():
			return "expected " + resource + ", and " + subresource + " in the field subresource"
		case divided && strings.HasSuffix(found, "/"+plural):
			return "expected " + kind.Resource()
		}
	}
	return ""
}

// UnknownResourceHint returns a part of an error message about an unknown resource, after the list of known ones. It
// returns "" if a known resource is similar and the given name has no API group, as that of a custom resource has.
func UnknownResourceHint(resource string, known []string) string {
	if resource == "" || !strings.Contains(resource, ".") && similar(resource, known) != "" {
		return ""
	}
	return ", or the resource of a kind in the field operator.kinds of the scenario"
}
