package testenv

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/faults/catalog"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
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

// healTimeout limits how long the healing of a fault may take.
const healTimeout = 30 * time.Second

// inject injects a fault. The index of the fault in its spec is part of its random
// seed, so that two equal faults act differently.
func (e *Env) inject(ctx context.Context, spec FaultSpec, namespace string, index int) (heal func(context.Context) error, err error) {
	fault, err := newFault(spec)
	if err != nil {
		return nil, err
	}
	seed := fnv.New64a()
	fmt.Fprintf(seed, "%s %d", namespace, index)
	env := &faults.Env{
		Rand:  rand.New(rand.NewPCG(e.options.Seed, seed.Sum64())),
		Proxy: e.proxy, Subject: e.subject, Admin: e.admin,
		Capabilities: e.cluster.Capabilities(), Namespace: namespace, Clock: clock.RealClock{},
		Report: faults.NewReporter(e.recorder, index, spec.Kind),
	}
	if err := faults.Inject(ctx, fault, env); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), healTimeout)
		defer cancel()
		return faults.Heal(ctx, fault, env)
	}, nil
}

func newFault(spec FaultSpec) (faults.Fault, error) {
	kind, err := catalog.Find(spec.Kind)
	if err != nil {
		return nil, err
	}
	params, err := scenario.ParseParams("spec", spec.Kind, []byte(spec.Params))
	if err != nil {
		return nil, err
	}
	return kind.New(params)
}
