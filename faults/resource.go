package faults

import "strings"

// ResourceBounds describes the permitted values of a parameter that [Resource] checks.
var ResourceBounds = "one of " + strings.Join(Resources, ", ")

// Resource returns an error if the parameter "resource" is not a resource that the scenario may
// name. The custom resources that the workload of the scenario creates are permitted too.
func Resource(params Params, value string) error {
	return OneOf(params, "resource", value, params.Resources())
}
