package run

import (
	"cmp"
	"fmt"

	"github.com/kube-gauntlet/gauntlet/faults/catalog"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// Supported returns an error if the named provider cannot run the scenario. The nodes must have
// capacity for all pods of the scenario, and the provider must support all faults. A scenario that
// creates cluster-scoped objects needs a provider that starts its own control plane. The provider
// must serve the kinds of all objects. The error contains the position in the scenario file.
func Supported(s *scenario.Scenario, provider string) error {
	p, err := providers.Named(cmp.Or(provider, providers.Default()))
	if err != nil {
		return err
	}
	if pods, room := s.PodsMax(), p.PodsPerNode*s.Cluster.Nodes; p.PodsPerNode > 0 && pods > room {
		return s.Errorf("cluster.nodes", "the workload needs %d pods at the same time, but %d nodes of provider %s can run only %d; add nodes or remove pods",
			pods, s.Cluster.Nodes, provider, room)
	}
	if err := s.NeedsOwnControlPlane(); err != nil && !p.Capabilities.Has(cluster.OwnsControlPlane) {
		return err
	}
	if err := s.CheckKinds(func(kind kube.Kind) error { return servedKind(kind, p) }); err != nil {
		return err
	}
	for _, spec := range s.Faults {
		if err := supportedFault(spec, p); err != nil {
			return err
		}
	}
	return nil
}

// servedKind returns an error if the API servers of the provider p do not serve the kind.
func servedKind(kind kube.Kind, p providers.Provider) error {
	if p.Serves == nil || p.Serves(kind.GVR) {
		return nil
	}
	return fmt.Errorf("found %s of %s; expected a kind that provider %s serves, or another provider, such as --provider=%s", kind.Name, kind.APIVersion(), p.Name, providers.Default())
}

// supportedFault returns an error if the provider p does not support the fault that the argument
// spec describes. The error contains the position in the scenario file.
func supportedFault(spec scenario.Fault, p providers.Provider) error {
	faultType, err := catalog.Find(spec.Name)
	if err != nil {
		return spec.Errorf("%w", err)
	}
	if err := p.Capabilities.Require(faultType.Name, faultType.Needs...); err != nil {
		return spec.Errorf("not supported by provider %s%s", p.Name, providers.Alternatives(err))
	}
	fault, err := faultType.Create(spec.Params)
	if err != nil {
		return err
	}
	if err := faultType.Supported(fault, p.Capabilities); err != nil {
		return spec.Errorf("not supported by provider %s: %w%s", p.Name, err, providers.Alternatives(err))
	}
	return nil
}
