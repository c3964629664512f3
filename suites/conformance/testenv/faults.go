package testenv

import (
	"context"
	"fmt"

	"github.com/kube-gauntlet/gauntlet/harness/environment"
)

// Profile is a set of faults that are active while specs run.
type Profile struct {
	Name string
	// Description describes the effects of the faults.
	Description string
	Faults      []FaultSpec
}

// FaultSpec is a fault of the catalog and its parameters, as in a scenario.
type FaultSpec struct{ Kind, Params string }

// Profiles contains all profiles. A profile must not combine faults that make upstream
// fail because of a known upstream issue. docs/known-upstream-issues.md describes these
// issues, and suites/regression has a scenario for each. Two combinations are known.
// The first is a lagging watch with lost responses to updates of Endpoints. The second
// is failing status updates with rejected updates of ReplicaSets. The second
// combination has another effect: a rejected update during proportional scaling changes
// the proportions.
var Profiles = []Profile{{
	Name:        "steady",
	Description: "every watch lags, one request in ten fails except updates of ReplicaSets, and one response to a create in twenty is lost",
	Faults: []FaultSpec{
		{"watch-delay", "{resource: pods, delay: 150ms}"},
		{"watch-delay", "{resource: replicasets.apps, delay: 100ms}"},
		{"watch-delay", "{resource: replicationcontrollers, delay: 100ms}"},
		{"watch-delay", "{resource: deployments.apps, delay: 50ms}"},
		{"watch-delay", "{resource: endpoints, delay: 100ms}"},
		{"watch-delay", "{resource: services, delay: 50ms}"},
		{"api-error", "{verb: create, resource: pods, code: 500, probability: 0.1}"},
		{"api-error", "{verb: delete, resource: pods, code: 429, probability: 0.1}"},
		{"api-error", "{verb: patch, resource: pods, code: 500, probability: 0.1}"},
		{"api-error", "{verb: create, resource: replicasets.apps, code: 500, probability: 0.1}"},
		{"api-error", "{verb: update, resource: replicasets.apps, subresource: status, code: 500, probability: 0.1}"},
		{"api-error", "{verb: update, resource: replicationcontrollers, subresource: status, code: 500, probability: 0.1}"},
		{"api-error", "{verb: update, resource: deployments.apps, subresource: status, code: 409, probability: 0.1}"},
		{"api-error", "{verb: update, resource: endpoints, code: 500, probability: 0.1}"},
		{"api-error", "{verb: create, resource: endpoints, code: 500, probability: 0.1}"},
		{"response-lost", "{verb: create, resource: pods, how: reset, probability: 0.05}"},
		{"response-lost", "{verb: create, resource: replicasets.apps, how: reset, probability: 0.05}"},
		{"response-lost", "{verb: create, resource: endpoints, how: reset, probability: 0.05}"},
	},
}}

// FindProfile returns the profile with the given name, or nil if the name is empty.
func FindProfile(name string) (*Profile, error) {
	if name == "" {
		return nil, nil
	}
	var names []string
	for i := range Profiles {
		if Profiles[i].Name == name {
			return &Profiles[i], nil
		}
		names = append(names, Profiles[i].Name)
	}
	return nil, fmt.Errorf("profile %q: expected one of %v", name, names)
}

// inject injects a fault. The index of the fault in its spec is part of its random
// seed, so that two equal faults act differently.
func (e *Env) inject(ctx context.Context, spec FaultSpec, namespace string, index int) (heal func(context.Context) error, err error) {
	return e.env.Inject(ctx, environment.Injection{Fault: spec.Kind, Params: spec.Params, Namespace: namespace, Index: index})
}
