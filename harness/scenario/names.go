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

// UnknownResourceHint returns a part of an error message, after the list of known resources. It
// returns "" if the given name has no API group, and so cannot be that of a custom resource.
func UnknownResourceHint(resource string) string {
	if !strings.Contains(resource, ".") {
		return ""
	}
	return ", or the resource of a kind in the field operator.kinds of the scenario"
}
