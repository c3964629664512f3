package testenv

import (
	"context"
	"fmt"

	"github.com/kube-gauntlet/gauntlet/harness/environment"
)

// Profile is a named group of faults that are active while specs run. A spec is a Ginkgo test.
type Profile struct {
	Name string
	// Description says what the faults of the profile do.
	Description string
	Faults      []FaultSpec
}

// FaultSpec is a fault: its type in the catalog, such as "watch-delay", and its parameters in
// YAML. The parameters have the same form as in a scenario.
type FaultSpec struct{ Kind, Params string }

// Profiles lists all fault profiles. Some combinations of faults make kube-controller-manager show
// a known bug; see docs/known-upstream-issues.md. A profile must not contain such a combination.
// Two combinations are known:
//
//   - a delayed watch of Endpoints, with lost responses to updates of Endpoints
//   - failing status updates, with rejected updates of ReplicaSets. Rejected updates alone can
//     already change the proportions of a proportional scaling.
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

// FindProfile returns the fault profile with the given name. It returns nil for the name "".
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
	return nil, fmt.Errorf("unknown fault profile %q; expected one of %v", name, names)
}

// inject injects a fault in a namespace, and returns a function that heals the fault. The argument
// index counts the faults of the Ginkgo spec. The seed of the fault depends on index, so two equal
// faults draw different random numbers.
func (e *Env) inject(ctx context.Context, spec FaultSpec, namespace string, index int) (heal func(context.Context) error, err error) {
	return e.env.Inject(ctx, environment.Injection{Fault: spec.Kind, Params: spec.Params, Namespace: namespace, Index: index})
}
