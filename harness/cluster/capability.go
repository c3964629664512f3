package cluster

import (
	"slices"
	"strconv"
	"strings"
)

// Capability is a feature that every cluster of a provider has, such as "real kubelets". A provider
// is the way in which gauntlet gets a cluster: embedded, kind, existing or virtual. Faults,
// scenarios and suites ask for capabilities, never for a provider by name.
//
// For some capabilities, the cluster implements an additional interface of this package. Package
// clustertest checks that each cluster implements exactly the interfaces of its provider's
// capabilities.
type Capability string

// The capabilities of the control plane. An error message quotes the text of a missing capability.
// An example is "action restart requires a provider with \"access to etcd\"".
const (
	// OwnsControlPlane means that the control plane exists only for one run. Faults may therefore
	// change cluster-scoped objects, such as nodes and admission policies. A cluster without this
	// capability is shared with other users, and implements [Shared].
	OwnsControlPlane Capability = "control plane of its own"
	// RestartsControlPlane means that faults can kill kube-apiserver and etcd and start them again.
	// The cluster implements [Restartable].
	RestartsControlPlane Capability = "control plane that restarts"
	// AccessesEtcd means that the test harness can connect to etcd. The cluster implements
	// [EtcdProvider].
	AccessesEtcd Capability = "access to etcd"
	// ExportsLogs means that the test harness can export the logs of the cluster to a directory.
	// The cluster implements [LogExporter].
	ExportsLogs Capability = "log export"
	// StandingClusters means that `gauntlet up` can start a cluster that runs until `gauntlet
	// down`.
	StandingClusters Capability = "standing clusters"
	// RunsDetached means that a cluster of `gauntlet up` keeps running without a gauntlet process.
	// The cluster implements [Detached].
	RunsDetached Capability = "clusters that need no process of gauntlet"
	// ParallelRuns means that one machine can run several clusters at the same time. Only the
	// machine's CPU cores and memory limit their number.
	ParallelRuns Capability = "clusters for parallel runs"
	// ControlsAdmission means that the API server enforces quotas and admission policies, and refuses
	// creates in a terminating namespace. Faults make the API server refuse requests by these means.
	ControlsAdmission Capability = "admission control"
	// VirtualTime means that the cluster and the program under test use a virtual clock instead of
	// the system clock. When all goroutines are idle, the virtual clock jumps to the next timer.
	VirtualTime Capability = "virtual time"
)

// The capabilities of nodes and pods.
const (
	// SimulatedKubelets means that simulated kubelets write the status of pods, and that no
	// containers run. A fault may also write a pod's status, because simulated kubelets do not
	// overwrite the change.
	SimulatedKubelets Capability = "simulated kubelets"
	// RealKubelets means that real kubelets run the containers of pods. Faults do not write the
	// status of pods, because the kubelet would overwrite the change.
	RealKubelets Capability = "real kubelets"
	// ControlsContainers means that faults can make the workload's containers exit or become
	// unready. With real kubelets, the containers run the stand-in program (harness/standin), and
	// faults send HTTP requests to the program. With simulated kubelets, faults write the pod
	// status.
	ControlsContainers Capability = "containers that faults control"
	// ControlsKubelets means that faults can pause and restart the kubelet of a node. The cluster
	// implements [Kubelets].
	ControlsKubelets Capability = "kubelets that faults control"
	// StopsMachines means that faults can make a node lose power or its network connection. The
	// cluster implements [Machines].
	StopsMachines Capability = "nodes that lose power"
	// LoadsImages means that the test harness can load images and run commands on the nodes. The
	// cluster implements [NodeAccess].
	LoadsImages Capability = "nodes that accept images"
)

// Capabilities that say how the subject runs. The subject is the program with the controllers under
// test. A provider has exactly one of SubjectAsProcess, SubjectInPods and SubjectLinked.
const (
	// SubjectAsProcess means that gauntlet runs each replica of the program under test as a local
	// process.
	SubjectAsProcess Capability = "local processes that run the subject"
	// SubjectInPods means that each replica of the program under test is a pod on the control
	// plane node. The provider also has the capability LoadsImages, so that gauntlet can load the
	// program's image.
	SubjectInPods Capability = "pods that run the subject"
	// SubjectLinked means that the controllers under test are linked into the program
	// gauntlet-virtual. Each replica runs as goroutines of that program's process.
	SubjectLinked Capability = "in-process subject"
	// PausesSubject means that a fault can pause a replica of the program under test and resume
	// it.
	PausesSubject Capability = "subject that can be paused"
	// SkewsClocks means that a fault may shift the timestamps in objects that the program under
	// test receives. To the program, its own clock and the API server's clock then seem to differ.
	SkewsClocks Capability = "clock skew"
)

// Capabilities lists all capabilities of one provider.
type Capabilities []Capability

// Has reports whether c contains all capabilities in needed.
func (c Capabilities) Has(needed ...Capability) bool { return len(c.Missing(needed...)) == 0 }

// Missing returns the capabilities in needed that c does not contain, so that an error can name
// them.
func (c Capabilities) Missing(needed ...Capability) []Capability {
	var missing []Capability
	for _, n := range needed {
		if !slices.Contains(c, n) {
			missing = append(missing, n)
		}
	}
	return missing
}

// Require returns a [MissingError] if c lacks a capability in needed, and nil otherwise. The
// argument needer says what needs the capabilities, such as "action restart". The error message
// begins with this text.
func (c Capabilities) Require(needer string, needed ...Capability) error {
	if missing := c.Missing(needed...); len(missing) > 0 {
		return &MissingError{Subject: needer, Needed: needed, Missing: missing}
	}
	return nil
}

// MissingError says which required capabilities a provider lacks. [Capabilities.Require] returns
// this error.
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
