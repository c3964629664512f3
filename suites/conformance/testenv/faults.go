package testenv

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/faults/catalog"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// Profile is a set of faults that are in force while specs run.
type Profile struct {
	Name string
	// Description says what goes wrong.
	Description string
	Faults      []FaultSpec
}

// FaultSpec is a fault of the catalogue and its parameters, as scenarios have them.
type FaultSpec struct{ Kind, Params string }

// Profiles are those that there are. None has what upstream fails by a known weakness,
// whatever a spec is about (harness/check/TRAPS.md; suites/regression has a scenario of
// each): with a watch that lags, lost answers to updates of Endpoints (44), and, where
// status updates err, refused updates of ReplicaSets (3), one of which in the middle of a
// scale also changes its proportions (6). Ours has neither weakness; there is no profile
// that shows it.
var Profiles = []Profile{{
	Name:        "steady",
	Description: "every watch lags, one request in ten errs, but for updates of ReplicaSets, and the answer of one create in twenty is lost",
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

// FindProfile returns the profile of that name; nil for "".
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

// healTimeout bounds the healing of a fault.
const healTimeout = 30 * time.Second

// inject puts a fault in force. Its place among the spec's faults seeds what it
// draws.
func (w *Env) inject(ctx context.Context, spec FaultSpec, namespace string, place int) (heal func(context.Context) error, err error) {
	fault, err := newFault(spec)
	if err != nil {
		return nil, err
	}
	seed := fnv.New64a()
	fmt.Fprintf(seed, "%s %d", namespace, place)
	env := &faults.Env{
		Rand:  rand.New(rand.NewPCG(w.options.Seed, seed.Sum64())),
		Proxy: w.proxy, Subject: w.subject, Admin: w.admin,
		Provider: w.options.Provider, Namespace: namespace, Clock: clock.RealClock{},
		Report: faults.NewReporter(w.recorder, place, spec.Kind),
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

// healFaults heals what is in force, the last first.
func healFaults(ctx context.Context, heals []func(context.Context) error) error {
	var all []error
	for i := len(heals) - 1; i >= 0; i-- {
		all = append(all, heals[i](ctx))
	}
	return errors.Join(all...)
}
