package cluster

import "slices"

// Capability is something that the clusters of a provider can do, or a property of them. Faults,
// scenarios and suites ask for capabilities and never for the name of a provider.
type Capability string

// The capabilities. The text completes the phrase "the provider has no …" in error messages.
const (
	// OwnsControlPlane means that the control plane exists only for the run. A fault may
	// restart its components, compact etcd, and change objects that affect the whole cluster.
	// The cluster implements [Restartable] and [EtcdProvider].
	OwnsControlPlane Capability = "control plane of its own"
	// SimulatedKubelets means that no containers run. A kubelet does not overwrite a pod
	// status that another client writes.
	SimulatedKubelets Capability = "simulated kubelets"
	// RealKubelets means that kubelets run containers. The harness cannot write the status of
	// a pod, because the kubelet overwrites it.
	RealKubelets Capability = "real kubelets"
	// StandInPods means that the containers of the workload's pods are the stand-in. A fault
	// can make the stand-in fail or report that it is not ready.
	StandInPods Capability = "stand-in pods"
	// StopsMachines means that nodes can lose power and network; the cluster implements
	// [Machines].
	StopsMachines Capability = "nodes that lose power"
	// SubjectInPods means that the replicas of the subject run as pods. Without it, they are
	// processes of this machine.
	SubjectInPods Capability = "subject in pods"
	// ExportsLogs means that the cluster implements [LogExporter].
	ExportsLogs Capability = "logs to export"
	// SkewsClocks means that a fault may shift the timestamps that the subject receives.
	SkewsClocks Capability = "clocks to skew"
)

// Capabilities are the capabilities of one provider.
type Capabilities []Capability

// Has reports whether all given capabilities are present.
func (c Capabilities) Has(needed ...Capability) bool { return len(c.Missing(needed...)) == 0 }

// Missing returns those of the given capabilities that are not present.
func (c Capabilities) Missing(needed ...Capability) []Capability {
	var missing []Capability
	for _, n := range needed {
		if !slices.Contains(c, n) {
			missing = append(missing, n)
		}
	}
	return missing
}
