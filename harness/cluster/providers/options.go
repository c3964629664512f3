package providers

import (
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/internal/cluster/existing"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// Options says which cluster to start, for any provider. Providers ignore fields that do not
// apply to them. With a real kubelet, for example, the pod delays have no effect.
type Options struct {
	// Nodes is the number of schedulable nodes, at least 1.
	Nodes int
	// Pods is the maximum number of pods of the run. An existing cluster must have capacity
	// for them.
	Pods int
	// PodStartDelay is the time from scheduling to Ready of a simulated pod.
	// PodStopDelay is the time from its deletion to its end.
	PodStartDelay, PodStopDelay time.Duration
	// Controllers are the controllers under test, which the cluster does not run. If it is
	// empty, these are the default controllers.
	Controllers []kube.Controller
	// Dir is an existing directory for state. LogDir is an existing directory for logs.
	Dir, LogDir string
	// UpstreamDir holds the binaries of etcd, Kubernetes and KWOK. If it is empty, the
	// provider uses the cache that harness/upstream fills.
	UpstreamDir string
	// NodeImage is the image of a kind node. If it is empty, the provider uses its
	// default image.
	NodeImage string
	// Relays is the number of subject replicas that run in pods. Each replica connects to
	// the fault proxy through a relay in its pod. The provider makes the ports of the
	// relays reachable from this machine.
	Relays int
	// Existing selects an existing cluster.
	Existing cluster.Existing
	// Standing makes a cluster with the capability RunsDetached outlive gauntlet.
	Standing bool
}

// existing returns the options of an existing cluster.
func (o *Options) existing() existing.Options {
	return existing.Options{Existing: o.Existing, Pods: o.Pods, Controllers: o.Controllers}
}
