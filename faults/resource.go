package faults

import "strings"

// ResourceBounds describes the values that [Resource] permits, for docs/reference/faults.md.
var ResourceBounds = "one of " + strings.Join(Resources, ", ")

// Resource returns an error if value is not a resource that the scenario may name. The scenario
// may also name the custom resources that its workload creates. value is the value of the
// parameter "resource".
func Resource(params Params, value string) error {
	return OneOf(params, "resource", value, params.Resources())
}
