package e2eframework

import (
	"context"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/types"
)

// ProxyConfig returns a client configuration for controllers that the test binary runs. Clients
// connect through the fault proxy and have all permissions. The argument client is the name of the
// client in the history. Use one name for each process or manager, and a new name after a restart.
func ProxyConfig(ctx context.Context, client string) (*rest.Config, error) {
	f, err := featureOf(ctx)
	if err != nil {
		return nil, err
	}
	return f.session.Environment.ProxyConfig(client)
}

// Inject returns a step function that injects a fault. The fault is active until [Heal], or until
// the end of the feature. The argument params contains the fault's parameters in YAML, as in a
// scenario:
//
//	Inject("api-error", "{verb: create, resource: pods, code: 500, every: 3}")
func Inject(fault, params string) types.StepFunc {
	return onFeature(func(ctx context.Context, f *feature) error { return f.inject(ctx, fault, params) })
}

// Heal returns a step function that heals all faults that [Inject] has injected.
func Heal() types.StepFunc {
	return onFeature(func(ctx context.Context, f *feature) error { return f.heal(ctx) })
}

// Converged returns a step function that waits until all objects have converged: their status
// matches their spec. Faults may be active. The step function fails the test if the objects have
// not converged within Chaos.Settle.Within.
func Converged() types.StepFunc {
	return onFeature(func(ctx context.Context, f *feature) error { return f.session.Converged(ctx) })
}

// onFeature returns a step function that calls the argument act with the current feature. If act
// returns an error, the test ends.
func onFeature(act func(context.Context, *feature) error) types.StepFunc {
	return func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
		t.Helper()
		f, err := featureOf(ctx)
		if err == nil {
			err = act(ctx, f)
		}
		if err != nil {
			t.Fatal(err)
		}
		return ctx
	}
}
