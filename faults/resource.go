package faults

import (
	"slices"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/nearest"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// ResourceBounds describes the values that [Resource] permits, for docs/reference/faults.md.
var ResourceBounds = "one of " + strings.Join(Resources, ", ")

// Resource returns an error if the value of the parameter "resource" of a fault is not permitted.
// Permitted are the known resources, such as "pods", and the custom resources that the scenario's
// workload creates.
func Resource(params Params, value string) error {
	known := params.Resources()
	if advice := scenario.ResourceAdvice(value); advice != "" && !slices.Contains(known, value) {
		return params.Errorf("resource", "unknown value %q; %s", value, advice)
	}
	if hint := scenario.UnknownResourceHint(value, known); hint != "" && !slices.Contains(known, value) {
		return params.Errorf("resource", "unknown value %q; expected one of %s%s%s", value, strings.Join(known, ", "), hint, nearest.Suggestion(value, known))
	}
	return OneOf(params, "resource", value, known)
}
