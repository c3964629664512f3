package faults

import "strings"

// ResourceBounds describes the values that [Resource] permits, for docs/reference/faults.md.
var ResourceBounds = "one of " + strings.Join(Resources, ", ")

// Resource returns an error if value, which a scenario sets as parameter "resource", is not
// permitted. Permitted are the known resources, such as "pods", and the custom resources that
// the scenario's workload creates.
func Resource(params Params, value string) error {
	return OneOf(params, "resource", value, params.Resources())
}
