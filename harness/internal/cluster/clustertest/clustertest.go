// Package clustertest contains a test for the packages of providers.
package clustertest

import (
	"errors"
	"fmt"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

// interfaces contains the capabilities that mean that the cluster implements an interface.
var interfaces = []struct {
	capability  cluster.Capability
	name        string
	implemented func(cluster.Cluster) bool
}{
	{cluster.RestartsControlPlane, "Restartable", implements[cluster.Restartable]},
	{cluster.AccessesEtcd, "EtcdProvider", implements[cluster.EtcdProvider]},
	{cluster.ExportsLogs, "LogExporter", implements[cluster.LogExporter]},
	{cluster.RunsDetached, "Detached", implements[cluster.Detached]},
	{cluster.ControlsKubelets, "Kubelets", implements[cluster.Kubelets]},
	{cluster.StopsMachines, "Machines", implements[cluster.Machines]},
	{cluster.LoadsImages, "NodeAccess", implements[cluster.NodeAccess]},
}

func implements[I any](c cluster.Cluster) bool {
	_, ok := c.(I)
	return ok
}

// CheckCapabilities returns an error unless the capabilities of a cluster are consistent.
// The cluster must implement exactly the interfaces of its capabilities, and run its
// subject in exactly one way. CheckCapabilities accepts a cluster that was not started.
func CheckCapabilities(c cluster.Cluster) error {
	has := c.Capabilities()
	var all []error
	for _, i := range interfaces {
		if has.Has(i.capability) != i.implemented(c) {
			all = append(all, fmt.Errorf("%s: capability %q is %t, but cluster.%s implemented is %t",
				c.Name(), i.capability, has.Has(i.capability), i.name, i.implemented(c)))
		}
	}
	if shared := implements[cluster.Shared](c); has.Has(cluster.OwnsControlPlane) == shared {
		all = append(all, fmt.Errorf("%s: capability %q is %t, and cluster.Shared implemented is %t; expected one of them",
			c.Name(), cluster.OwnsControlPlane, !shared, shared))
	}
	if has.Has(cluster.SimulatedKubelets, cluster.RealKubelets) {
		all = append(all, fmt.Errorf("%s: expected at most one of %q and %q", c.Name(), cluster.SimulatedKubelets, cluster.RealKubelets))
	}
	if n := 3 - len(has.Missing(cluster.SubjectAsProcess, cluster.SubjectInPods, cluster.SubjectLinked)); n != 1 {
		all = append(all, fmt.Errorf("%s: has %d of the capabilities %q, %q and %q; expected one",
			c.Name(), n, cluster.SubjectAsProcess, cluster.SubjectInPods, cluster.SubjectLinked))
	}
	if has.Has(cluster.SubjectInPods) && !has.Has(cluster.LoadsImages) {
		all = append(all, fmt.Errorf("%s: capability %q requires %q", c.Name(), cluster.SubjectInPods, cluster.LoadsImages))
	}
	return errors.Join(all...)
}
