// Package clustertest checks whether a cluster implements the capabilities that its provider
// declares. The tests of each provider call [CheckCapabilities].
package clustertest

import (
	"errors"
	"fmt"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

// interfaces lists the capabilities that require an interface. For example, a cluster with
// RestartsControlPlane must implement cluster.Restartable.
var interfaces = []struct {
	capability  cluster.Capability
	name        string                     // name of the interface in package cluster
	implemented func(cluster.Cluster) bool // reports whether a cluster implements the interface
}{
	{cluster.RestartsControlPlane, "Restartable", implements[cluster.Restartable]},
	{cluster.AccessesEtcd, "EtcdProvider", implements[cluster.EtcdProvider]},
	{cluster.ExportsLogs, "LogExporter", implements[cluster.LogExporter]},
	{cluster.RunsDetached, "Detached", implements[cluster.Detached]},
	{cluster.ControlsKubelets, "Kubelets", implements[cluster.Kubelets]},
	{cluster.StopsMachines, "Machines", implements[cluster.Machines]},
	{cluster.LoadsImages, "NodeAccess", implements[cluster.NodeAccess]},
}

// implements reports whether the cluster c implements the interface I, such as cluster.Restartable.
func implements[I any](c cluster.Cluster) bool {
	_, ok := c.(I)
	return ok
}

// CheckCapabilities returns an error if c's capabilities do not match the interfaces that c
// implements. Two capabilities that contradict each other are also an error, such as simulated and
// real kubelets.
//
// The cluster c need not be started.
func CheckCapabilities(c cluster.Cluster) error {
	has := c.Capabilities()
	var all []error
	for _, i := range interfaces {
		if has.Has(i.capability) != i.implemented(c) {
			all = append(all, fmt.Errorf("provider %s: the cluster has capability %q: %t; it implements the interface cluster.%s: %t; expected true for both or false for both",
				c.Name(), i.capability, has.Has(i.capability), i.name, i.implemented(c)))
		}
	}
	if shared := implements[cluster.Shared](c); has.Has(cluster.OwnsControlPlane) == shared {
		all = append(all, fmt.Errorf("provider %s: the cluster has capability %q: %t; it implements the interface cluster.Shared: %t; expected true for exactly one of the two",
			c.Name(), cluster.OwnsControlPlane, !shared, shared))
	}
	if has.Has(cluster.SimulatedKubelets, cluster.RealKubelets) {
		all = append(all, fmt.Errorf("provider %s: found the capabilities %q and %q; expected at most one of the two", c.Name(), cluster.SimulatedKubelets, cluster.RealKubelets))
	}
	if n := 3 - len(has.Missing(cluster.SubjectAsProcess, cluster.SubjectInPods, cluster.SubjectLinked)); n != 1 {
		all = append(all, fmt.Errorf("provider %s: found %d of the capabilities %q, %q and %q; expected exactly one",
			c.Name(), n, cluster.SubjectAsProcess, cluster.SubjectInPods, cluster.SubjectLinked))
	}
	if has.Has(cluster.SubjectInPods) && !has.Has(cluster.LoadsImages) {
		all = append(all, fmt.Errorf("provider %s: found capability %q without capability %q; expected both", c.Name(), cluster.SubjectInPods, cluster.LoadsImages))
	}
	return errors.Join(all...)
}
