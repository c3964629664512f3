package cluster

import (
	"slices"
	"strconv"
	"strings"
)

// Capability is a feature or a property of all clusters of a provider. Faults, scenarios and suites
// require capabilities and never the name of a provider.
//
// Some capabilities mean that the cluster implements an interface of this package. For each
// provider, a test checks that its clusters implement exactly the interfaces of its capabilities.
type Capability string

// The capabilities of the control plane. In error messages, the text of a capability follows
// "requires a provider with" or "the provider has no". An example is "requires a provider with \"access to etcd\"".
const (
	// OwnsControlPlane means that the control plane exists only for the run. Faults may therefore
	// change objects that affect the whole cluster, such as nodes and admission policies. A cluster
	// without this capability implements [Shared].
	OwnsControlPlane Capability = "control plane of its own"
	// RestartsControlPlane means that faults can kill kube-apiserver and etcd and start them again.
	// The cluster implements [Restartable].
	RestartsControlPlane Capability = "control plane that restarts"
	// AccessesEtcd means that the harness can connect to etcd. The cluster implements
	// [EtcdProvider].
	AccessesEtcd Capability = "access to etcd"
	// ExportsLogs means that the harness can export the logs of the cluster to a directory. The
	// cluster implements [LogExporter].
	ExportsLogs Capability = "log export"
	// StandingClusters means that `gauntlet up` can start a cluster that stays up.
	StandingClusters Capability = "standing clusters"
	// RunsDetached means that a standing cluster keeps running without a gauntlet process. The
	// cluster implements [Detached].
	RunsDetached Capability = "clusters that need no process of gauntlet"
	// ParallelRuns means that one machine can run several clusters at the same time. The CPU cores
	// and the memory of the machine limit the number of clusters.
	ParallelRuns Capability = "clusters for parallel runs"
	// VirtualTime means that the cluster and the subject use a virtual clock instead of the system
	// clock. The virtual clock advances to the next timer as soon as all components are idle.
	VirtualTime Capability = "virtual time"
)

// The capabilities of nodes and pods.
const (
	// SimulatedKubelets means that simulated kubelets set the status of pods, and that no
	// containers run. A fault can write the status of a pod, because simulated kubelets do not undo
	// such a change.
	SimulatedKubelets Capability = "simulated kubelets"
	// RealKubelets means that real kubelets run the containers of pods. A fault cannot write the
	// status of a pod, because the kubelet overwrites it.
	RealKubelets Capability = "real kubelets"
	// ControlsContainers means that a fault can make the containers of the workload exit or become
	// unready. With real kubelets, the fault sends HTTP requests to the stand-in program
	// (harness/standin) in the containers. With simulated kubelets, the fault writes the pod
	// status.
	ControlsContainers Capability = "containers that faults control"
	// ControlsKubelets means that faults can pause and restart the kubelet of a node. The cluster
	// implements [Kubelets].
	ControlsKubelets Capability = "kubelets that faults control"
	// StopsMachines means that faults can make a node lose power or its network connection. The
	// cluster implements [Machines].
	StopsMachines Capability = "nodes that lose power"
	// LoadsImages means that the harness can load images and run commands on the nodes. The
	// cluster implements [NodeAccess].
	LoadsImages Capability = "nodes that accept images"
)

// The capabilities of the subject. A provider has exactly one of SubjectAsProcess, SubjectInPods
// and SubjectLinked, which say how the replicas of the subject run.
const (
	// SubjectAsProcess means that the replicas of the subject are local processes, which gauntlet
	// starts.
	SubjectAsProcess Capability = "local processes that run the subject"
	// SubjectInPods means that the replicas of the subject run as pods on the control plane
	// node. The provider also has the capability LoadsImages.
	SubjectInPods Capability = "pods that run the subject"
	// SubjectLinked means that the controllers under test are linked into gauntlet. Their replicas
	// are goroutines of the gauntlet process.
	SubjectLinked Capability = "in-process subject"
	// PausesSubject means that a fault can pause a replica of the subject and resume it.
	PausesSubject Capability = "subject that can be paused"
	// SkewsClocks means that a fault may change the timestamps in objects that the subject
	// receives. The subject then behaves as if its clock and the clock of the API server differed.
	SkewsClocks Capability = "clock skew"
)

// Capabilities lists all capabilities of one provider.
type Capabilities []Capability

// Has reports whether c contains all capabilities in needed.
func (c Capabilities) Has(needed ...Capability) bool { return len(c.Missing(needed...)) == 0 }

// Missing returns the capabilities in needed that c does not contain.
func (c Capabilities) Missing(needed ...Capability) []Capability {
	var missing []Capability
	for _, n := range needed {
		if !slices.Contains(c, n) {
			missing = append(missing, n)
		}
	}
	return missing
}

// Require returns a [MissingError] if c lacks one of the capabilities in needed. The argument
// subject names what requires them, such as "action restart". The error message begins with it.
func (c Capabilities) Require(subject string, needed ...Capability) error {
	if missing := c.Missing(needed...); len(missing) > 0 {
		return &MissingError{Subject: subject, Needed: needed, Missing: missing}
	}
	return nil
}

// MissingError is the error of [Capabilities.Require] if a provider lacks a required capability.
type MissingError struct {
	Subject string       // what requires the capabilities, for example "action restart"
	Needed  []Capability // all capabilities that Subject requires
	Missing []Capability // the capabilities in Needed that the provider lacks
}

func (e *MissingError) Error() string {
	texts := make([]string, 0, len(e.Missing))
	for _, m := range e.Missing {
		texts = append(texts, strconv.Quote(string(m)))
	}
	return e.Subject + " requires a provider with " + strings.Join(texts, " and ")
}
