package faults

import (
	"slices"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// Verbs and Resources are the verbs and resources that a scenario may name.
var (
	Verbs     = scenario.Verbs
	Resources = scenario.Resources
)

// Providers are the names of all cluster providers.
var Providers = []string{Simulated, Kubelets, Existing}

// OwnClusters are the providers that create a cluster for the run. Faults that change
// the whole cluster support only these providers.
var OwnClusters = []string{Simulated, Kubelets}

// The provider names, grouped by the kubelets of their clusters. Simulated has simulated
// kubelets, which do not overwrite a pod status that another client writes. Kubelets has
// real kubelets. Existing is a cluster that the user provides; its kubelets are assumed to
// be real.
const (
	Simulated = "embedded"
	Kubelets  = "kind"
	Existing  = "existing"
)

// OneOf returns an error unless the parameter has one of the known values.
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
