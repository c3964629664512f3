package providers

import (
	"time"

	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/internal/cluster/existing"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// Options describes the cluster that a provider starts. All providers have the same options, and
// each provider ignores the options that it does not use. For example, the provider kind ignores
// the pod delays, because real kubelets start the pods.
type Options struct {
	// Nodes is the number of schedulable nodes, at least 1.
	Nodes int
	// Pods is the maximum number of pods that exist at one time during the run. The nodes of an
	// existing cluster must have free capacity for this number of pods.
	Pods int
	// PodStartDelay is the time from the scheduling of a pod until a simulated kubelet makes the
	// pod Ready. PodStopDelay is the time from the graceful deletion of a pod until a simulated
	// kubelet removes it.
	PodStartDelay, PodStopDelay time.Duration
	// Controllers lists the controllers under test, which the cluster's own kube-controller-manager
	// does not run. Nil means [kube.DefaultControllers].
	Controllers []kube.Controller
	// Volumes gives a cluster with simulated kubelets a default StorageClass whose volumes are
	// simulated. Other clusters have the StorageClasses of their nodes.
	Volumes bool
	// Dir is an existing directory, in which the provider keeps the state of the cluster. LogDir is
	// an existing directory for the logs of the components.
	Dir, LogDir string
	// UpstreamDir is the directory with the binaries of etcd, Kubernetes and KWOK. Empty means the
	// cache directory that `gauntlet setup` fills.
	UpstreamDir string
	// NodeImage is the container image of the nodes of a kind cluster. Empty means that
	// [kind.ChooseImage] selects the image.
	NodeImage string
	// KindConfig is the configuration of a kind cluster, or nil. Its nodes replace Nodes. Other
	// providers ignore it. See [kind.Options].
	KindConfig *v1alpha4.Cluster
	// DNS lets the pods of a kind cluster resolve the names of Services. Other providers ignore it.
	DNS bool
	// Relays is the number of subject replicas that run in pods. Each of these replicas connects to
	// the fault proxy through a relay container in its pod. For each relay, the provider forwards a
	// local port to the port on which the relay listens.
	Relays int
	// Existing has the options of the provider existing, such as the kubeconfig.
	Existing cluster.Existing
	// Standing makes the cluster keep running after gauntlet exits. Only a provider with the
	// capability [cluster.RunsDetached] uses it.
	Standing bool
}

// existing returns the options with which the provider existing starts a cluster.
func (o *Options) existing() existing.Options {
	return existing.Options{Existing: o.Existing, Pods: o.Pods, Controllers: o.Controllers}
}
