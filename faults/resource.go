package faults

import "strings"

// ResourceBounds describes the permitted values of a parameter that [Resource] checks.
var ResourceBounds = "one of " + strings.Join(Resources, ", ")

// Resource returns an error unless the value of the parameter "resource" is a resource that
// the scenario may name. The custom resources that the workload of the scenario creates are
// permitted too.
func Resource(params Params, value string) error {
	return OneOf(params, "resource", value, params.Resources())
}
