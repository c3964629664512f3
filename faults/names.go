package faults

import (
	"slices"
	"strings"
)

// Verbs are the verbs of the API that a scenario may name.
var Verbs = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}

// Resources are the resources that a scenario may name: those that workload
// controllers read and write. A subject that uses others needs them added here;
// a list is kept so that a misspelt name is an error and no fault that never
// fires.
var Resources = []string{
	"configmaps",
	"controllerrevisions.apps",
	"daemonsets.apps",
	"deployments.apps",
	"endpoints",
	"endpointslices.discovery.k8s.io",
	"events",
	"events.events.k8s.io",
	"jobs.batch",
	"leases.coordination.k8s.io",
	"namespaces",
	"nodes",
	"pods",
	"replicasets.apps",
	"replicationcontrollers",
	"services",
	"statefulsets.apps",
}

// Providers are the names of the clusters that there are.
var Providers = []string{Simulated, Kubelets, Existing}

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
