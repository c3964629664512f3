package faults

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/nearest"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// Verbs and Resources are the API verbs and the resources that every scenario may name, such as
// "create" and "pods". A scenario may also name the custom resources that its workload creates;
// see [Resource].
var (
	Verbs     = scenario.Verbs
	Resources = scenario.Resources
)

// OneOf returns an error if the value of a fault's parameter is not in the list of known values.
// For example, it rejects the verb "craete" and suggests "create".
//
// The argument field is the name of the parameter, and known is the list. The error begins with
// the position of the parameter in the scenario file.
func OneOf(params Params, field, value string, known []string) error {
	if slices.Contains(known, value) {
		return nil
	}
	expected := "expected one of " + strings.Join(known, ", ")
	if value == "" {
		return params.Errorf(field, "not given; %s", expected)
	}
	return params.Errorf(field, "unknown value %q; %s%s", value, expected, nearest.Suggestion(value, known))
}

// Counted returns a number with its noun for messages, such as "1 watch" or "2 watches".
func Counted(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "ch"):
		noun += "e"
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
