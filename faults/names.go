package faults

import (
	"slices"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// Verbs and Resources are those that a scenario may name.
var (
	Verbs     = scenario.Verbs
	Resources = scenario.Resources
)

// Providers are the names of the clusters that there are.
var Providers = []string{Simulated, Kubelets, Existing}

// OwnClusters are the names of those that a run makes for itself, of which it may
// break what it likes.
var OwnClusters = []string{Simulated, Kubelets}

// Simulated is the provider whose kubelets are simulated: what others write into
// a pod's status stays. The pods of Kubelets run on real ones, and those of
// Existing, which is a cluster that somebody else made, are taken to.
const (
	Simulated = "embedded"
	Kubelets  = "kind"
	Existing  = "existing"
)

// OneOf checks that a parameter has one of the known values.
func OneOf(params Params, field, value string, known []string) error {
	if slices.Contains(known, value) {
		return nil
	}
	expected := "expected one of " + strings.Join(known, ", ")
	if value == "" {
		return params.Errorf(field, "not given; %s", expected)
	}
	return params.Errorf(field, "unknown value %q; %s", value, expected)
}
