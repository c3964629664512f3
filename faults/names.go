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
	suggestion := nearest.Suggestion(value, known)
	if advice := advices[field+": "+strings.ToLower(value)]; advice != "" {
		suggestion = "; " + advice
	}
	return params.Errorf(field, "unknown value %q; %s%s", value, expected, suggestion)
}

// advices says what to write instead of values that a parameter never has. The keys have the form PARAMETER: VALUE.
var advices = map[string]string{
	"verb: watch":         "for watches, use a fault such as watch-end, watch-delay or request-reset",
	"verb: write":         "only triggers have the verb write; use one fault for each verb",
	"verb: *":             "use one fault for each verb",
	"verb: all":           "use one fault for each verb",
	"resource: *":         "use one fault for each resource",
	"how: hang":           "to hold requests, use the fault request-hang",
	"how: timeout":        "for a time-out, use how: error with code: 504, or the fault request-hang",
	"how: delay":          "to delay responses, use the fault response-slow",
	"type: bookmark":      "for bookmarks, use the fault bookmark-loss",
	"action: kill":        "did you mean delete?",
	"action: pod-kill":    "did you mean delete?",
	"action: pod-delete":  "did you mean delete?",
	"action: pod-failure": "did you mean fail?",
	"verb: post":          "did you mean create?",
	"verb: put":           "did you mean update?",
	"verb: remove":        "did you mean delete?",
	"how: sigkill":        "did you mean kill?",
	"how: sigterm":        "did you mean terminate?",
	"how: graceful":       "did you mean terminate?",
	"breaks: tcp":         "did you mean connection?",
	"breaks: stream":      "did you mean request?",
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
