package cluster

import (
	"slices"
	"strings"
)

// Capability is something that the clusters of a provider can do, or a property of them. Faults,
// scenarios and suites ask for capabilities and never for the name of a provider.
//
// Some capabilities mean that the cluster implements an interface of this package. A test in
// the package of each provider checks that the cluster implements exactly the interfaces of
// its capabilities.
type Capability string

// The capabilities of the control plane. The text of every capability completes the phrases
// "requires …" and "the provider has no …" in error messages.
const (
	// OwnsControlPlane means that the control plane exists only for the run. A fault may
	// change objects that affect the whole cluster, such as nodes and policies. A cluster
	// without this capability implements [Shared].
	OwnsControlPlane Capability = "control plane of its own"
	// RestartsControlPlane means that the components of the control plane can be stopped and
	// started again. The cluster implements [Restartable].
	RestartsControlPlane Capability = "control plane that restarts"
	// AccessesEtcd means that the harness can connect to etcd. The cluster implements
	// [EtcdProvider].
	AccessesEtcd Capability = "access to etcd"
	// ExportsLogs means that logs of the cluster can be exported. The cluster implements
	// [LogExporter].
	ExportsLogs Capability = "logs to export"
	// StandingClusters means that `gauntlet up` can start a cluster that stays up.
	StandingClusters Capability = "standing clusters"
	// RunsDetached means that a standing cluster needs no process of gauntlet. The cluster
	// implements [Detached].
	RunsDetached Capability = "clusters that need no process of gauntlet"
	// ParallelRuns means that one machine can have several clusters at the same time. Its
	// cores and its memory limit their number.
	ParallelRuns Capability = "clusters for parallel runs"
	// VirtualTime means that the cluster and the subject have a virtual clock. It advances as
	// soon as nothing is left to do at the current time.
	VirtualTime Capability = "virtual time"
)

// The capabilities of nodes and pods.
const (
	// SimulatedKubelets means that no containers run. A kubelet does not overwrite a pod
	// status that another client writes.
	SimulatedKubelets Capability = "simulated kubelets"
	// RealKubelets means that kubelets run containers. The harness cannot write the status of
	// a pod, because the kubelet overwrites it.
	RealKubelets Capability = "real kubelets"
	// ControlsContainers means that a fault can make the workload's containers exit or become
	// unready. Real containers run the stand-in. For simulated kubelets, the fault writes the
	// pod status.
	ControlsContainers Capability = "containers that faults control"
	// ControlsKubelets means that kubelets can be paused and restarted. The cluster
	// implements [Kubelets].
	ControlsKubelets Capability = "kubelets that faults control"
	// StopsMachines means that nodes can lose power and network. The cluster implements
	// [Machines].
	StopsMachines Capability = "nodes that lose power"
	// LoadsImages means that the harness can load images and run commands on the nodes. The
	// cluster implements [NodeAccess].
	LoadsImages Capability = "nodes that accept images"
)

// The capabilities of the subject. A provider has one of the first three, which say how the
// replicas of the subject run.
const (
	// SubjectAsProcess means that the replicas of the subject are processes of this machine.
	SubjectAsProcess Capability = "subject as a process"
	// SubjectInPods means that the replicas of the subject run as pods on the control plane
	// node. The provider also has the capability LoadsImages.
	SubjectInPods Capability = "subject in pods"
	// SubjectLinked means that the replicas of the subject are goroutines of gauntlet.
	SubjectLinked Capability = "subject linked into gauntlet"
	// PausesSubject means that a fault can pause a replica of the subject.
	PausesSubject Capability = "subject that can be paused"
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

// Require returns a [MissingError] unless all given capabilities are present. The argument
// subject is the subject of the sentence in the error, such as "action restart".
func (c Capabilities) Require(subject string, needed ...Capability) error {
	if missing := c.Missing(needed...); len(missing) > 0 {
		return &MissingError{Subject: subject, Needed: needed, Missing: missing}
	}
	return nil
}

// MissingError means that a provider lacks capabilities.
type MissingError struct {
	Subject string       // thing that needs the capabilities, such as "action restart"
	Needed  []Capability // all capabilities that it needs
	Missing []Capability // those that the provider lacks
}

func (e *MissingError) Error() string {
	texts := make([]string, 0, len(e.Missing))
	for _, m := range e.Missing {
		texts = append(texts, string(m))
	}
	return e.Subject + " requires " + strings.Join(texts, " and ")
}
