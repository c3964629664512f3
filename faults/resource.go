package faults

import "strings"

// ResourceBounds describes the values that [Resource] permits, for docs/reference/faults.md.
var ResourceBounds = "one of " + strings.Join(Resources, ", ")

// Resource returns an error if the value of the parameter "resource" of a fault is not permitted.
// Permitted are the known resources, such as "pods", and the custom resources that the scenario's
// workload creates.
func Resource(params Params, value string) error {
	return OneOf(params, "resource", value, params.Resources())
}
