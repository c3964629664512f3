package scenario

import "github.com/kube-gauntlet/gauntlet/harness/kube"

// Verbs is the list of API verbs that a fault or a trigger of a scenario may name.
var Verbs = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}

// Resources is the list of resources that every scenario may name, such as pods or
// deployments.apps. Any other name is an error, because a fault with a misspelled resource would
// have no effect.
//
// A scenario may also name the resources of its generic kinds, such as custom resources; see
// [Scenario.Resources] and [Params.Resources].
var Resources = kube.Resources()
