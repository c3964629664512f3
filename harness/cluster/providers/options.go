package providers

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/internal/cluster/existing"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// Options describes the cluster that a provider starts. All providers accept the same options, and
// each provider ignores the options that it does not use. For example, kind clusters ignore the pod
// delays, because real kubelets start the pods.
type Options struct {
	// Nodes is the number of schedulable nodes, at least 1.
	Nodes int
	// Pods is the maximum number of pods that exist at one time during the test run. The nodes of
	// an existing cluster must have free capacity for this number of pods.
	Pods int
	// PodStartDelay is the time from the scheduling of a pod until a simulated kubelet makes the
	// pod Ready. PodStopDelay is the time from a pod's graceful deletion until a simulated kubelet
	// removes the pod.
	PodStartDelay, PodStopDelay time.Duration
	// Controllers lists the controllers under test, which the cluster's own kube-controller-manager
	// does not run. Nil means [kube.DefaultControllers].
	Controllers []kube.Controller
	// Volumes creates a default StorageClass with simulated volumes. Only embedded clusters use
	// this option.
	Volumes bool
	// Definitions are CustomResourceDefinitions that exist before kube-controller-manager starts. Its
	// garbage collector notices kinds that are defined later only after about 30 s. Only embedded
	// clusters use this option.
	Definitions []*unstructured.Unstructured
	// Dir is an existing directory for the cluster's data and credentials. LogDir is an existing
	// directory for the logs of the components.
	Dir, LogDir string
	// AuditLog is the path of the API server's audit log, which contains each request with its body
	// and its response. Empty means no audit log. Only embedded clusters use this option.
	AuditLog string
	// UpstreamDir is the directory with the binaries of etcd, Kubernetes and KWOK. Empty means the
	// cache directory that `gauntlet setup` fills.
	UpstreamDir string
	// NodeImage is the container image that the nodes of a kind cluster run. Empty means that
	// [kind.ChooseImage] selects the image.
	NodeImage string
	// KindConfig is a kind configuration, or nil. If it is set, a kind cluster has the nodes of
	// this configuration, and ignores the field Nodes; see [kind.Options]. Other providers ignore
	// KindConfig.
	KindConfig *v1alpha4.Cluster
	// DNS runs CoreDNS on a kind cluster, so that pods can resolve the names of Services. Other
	// providers ignore DNS.
	DNS bool
	// Relays is the number of replicas of the program under test that run in pods. Each such pod
	// contains a second container, the relay, which connects the replica to the fault proxy. For
	// each relay, a kind cluster forwards a local port to the relay's port.
	Relays int
	// Existing contains the options for --provider=existing, such as the kubeconfig.
	Existing cluster.Existing
	// Standing makes the cluster run on after gauntlet exits. Only providers with the capability
	// [cluster.RunsDetached] use this option.
	Standing bool
}

// existing returns the options for --provider=existing, in the form that package existing needs.
func (o *Options) existing() existing.Options {
	return existing.Options{Existing: o.Existing, Pods: o.Pods, Controllers: o.Controllers}
}
