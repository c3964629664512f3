package manager

import (
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Options are the settings of the binary. They have the names and the meaning
// that kube-controller-manager gives them, and its defaults but for the name of
// the lease.
type Options struct {
	// Kubeconfig is the file that says where the API server is; empty in a pod.
	Kubeconfig string
	// Controllers is what to run: names, "-name" for all but that, "*" for all.
	Controllers []string

	ConcurrentRCSyncs         int
	ConcurrentReplicaSetSyncs int
	ConcurrentDeploymentSyncs int
	ConcurrentEndpointSyncs   int

	// EndpointUpdatesBatchPeriod delays endpoints after pod changes.
	EndpointUpdatesBatchPeriod time.Duration
	// MinResyncPeriod is the least time between resyncs of an informer; the
	// real one is up to twice that.
	MinResyncPeriod time.Duration

	// KubeAPIQPS limits each client, in requests a second; negative is no limit.
	KubeAPIQPS float32
	// KubeAPIBurst is how many requests may exceed that for a moment.
	KubeAPIBurst int
	// KubeAPIContentType is the media type that requests are sent in.
	KubeAPIContentType string

	LeaderElection LeaderElectionOptions
	Serving        ServingOptions
}

// LeaderElectionOptions say how one of several replicas becomes the one that
// works.
type LeaderElectionOptions struct {
	Enabled           bool
	LeaseDuration     time.Duration
	RenewDeadline     time.Duration
	RetryPeriod       time.Duration
	ResourceLock      string
	ResourceName      string
	ResourceNamespace string
}

// ServingOptions say where health and metrics are served, over TLS.
type ServingOptions struct {
	BindAddress string
	// SecurePort is the TCP port; 0 serves nothing.
	SecurePort int
	// CertFile and KeyFile are PEM files. Without them the certificate is taken
	// from CertDir, or made there; without that it is made in memory.
	CertFile string
	KeyFile  string
	CertDir  string
	// AllowedPaths are those that are served, to anyone; one may end in a star.
	AllowedPaths []string
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	return &Options{
		Controllers:               []string{"*"},
		ConcurrentRCSyncs:         5,
		ConcurrentReplicaSetSyncs: 5,
		ConcurrentDeploymentSyncs: 5,
		ConcurrentEndpointSyncs:   5,
		MinResyncPeriod:           12 * time.Hour,
		KubeAPIQPS:                20,
		KubeAPIBurst:              30,
		KubeAPIContentType:        "application/vnd.kubernetes.protobuf",
		LeaderElection: LeaderElectionOptions{
			Enabled:           true,
			LeaseDuration:     15 * time.Second,
			RenewDeadline:     10 * time.Second,
			RetryPeriod:       2 * time.Second,
			ResourceLock:      resourcelock.LeasesResourceLock,
			ResourceName:      Name,
			ResourceNamespace: "kube-system",
		},
		Serving: ServingOptions{
			BindAddress: "0.0.0.0", SecurePort: 10257,
			AllowedPaths: []string{"/healthz", "/readyz", "/livez", "/metrics"},
		},
	}
}

// AddFlags registers a flag for every option.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "file that says how to reach the API server; without it, the service account of the pod")
	flags.StringSliceVar(&o.Controllers, "controllers", o.Controllers,
		"controllers to run: names, '*' for all, '-name' to leave one out; known: "+strings.Join(Known(), ", "))
	flags.IntVar(&o.ConcurrentRCSyncs, "concurrent-rc-syncs", o.ConcurrentRCSyncs, "ReplicationControllers synced at once")
	flags.IntVar(&o.ConcurrentReplicaSetSyncs, "concurrent-replicaset-syncs", o.ConcurrentReplicaSetSyncs, "ReplicaSets synced at once")
	flags.IntVar(&o.ConcurrentDeploymentSyncs, "concurrent-deployment-syncs", o.ConcurrentDeploymentSyncs, "Deployments synced at once")
	flags.IntVar(&o.ConcurrentEndpointSyncs, "concurrent-endpoint-syncs", o.ConcurrentEndpointSyncs, "Services synced to Endpoints at once")
	flags.DurationVar(&o.EndpointUpdatesBatchPeriod, "endpoint-updates-batch-period", o.EndpointUpdatesBatchPeriod, "how long to gather pod changes before Endpoints are written")
	flags.DurationVar(&o.MinResyncPeriod, "min-resync-period", o.MinResyncPeriod, "least time between resyncs; the real one is up to twice as long")
	flags.Float32Var(&o.KubeAPIQPS, "kube-api-qps", o.KubeAPIQPS, "requests a second of each client; negative for no limit")
	flags.IntVar(&o.KubeAPIBurst, "kube-api-burst", o.KubeAPIBurst, "requests of each client that may exceed the rate at once")
	flags.StringVar(&o.KubeAPIContentType, "kube-api-content-type", o.KubeAPIContentType, "media type of requests")
	o.LeaderElection.addFlags(flags)
	o.Serving.addFlags(flags)
}

func (o *LeaderElectionOptions) addFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&o.Enabled, "leader-elect", o.Enabled, "work only while holding the lease")
	flags.DurationVar(&o.LeaseDuration, "leader-elect-lease-duration", o.LeaseDuration, "how long others wait before they take over a lease that is not renewed")
	flags.DurationVar(&o.RenewDeadline, "leader-elect-renew-deadline", o.RenewDeadline, "how long the leader tries to renew before it gives up")
	flags.DurationVar(&o.RetryPeriod, "leader-elect-retry-period", o.RetryPeriod, "time between tries to take or renew the lease")
	flags.StringVar(&o.ResourceLock, "leader-elect-resource-lock", o.ResourceLock, "kind of the lock: leases")
	flags.StringVar(&o.ResourceName, "leader-elect-resource-name", o.ResourceName, "name of the lease")
	flags.StringVar(&o.ResourceNamespace, "leader-elect-resource-namespace", o.ResourceNamespace, "namespace of the lease")
}

func (o *ServingOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.BindAddress, "bind-address", o.BindAddress, "IP address to serve health and metrics on")
	flags.IntVar(&o.SecurePort, "secure-port", o.SecurePort, "port to serve health and metrics on, over TLS; 0 for none")
	flags.StringVar(&o.CertFile, "tls-cert-file", o.CertFile, "PEM file with the serving certificate")
	flags.StringVar(&o.KeyFile, "tls-private-key-file", o.KeyFile, "PEM file with its key")
	flags.StringSliceVar(&o.AllowedPaths, "authorization-always-allow-paths", o.AllowedPaths,
		"paths to serve, to anyone: no others are; * at the end stands for whatever follows; also /debug/pprof/goroutine, what every goroutine does")
	flags.StringVar(&o.CertDir, "cert-dir", o.CertDir, "directory to keep a self-signed certificate in when no files are given; empty keeps it in memory")
}

// optionErrors is what is wrong with options.
type optionErrors []error

// require notes a problem unless ok.
func (p *optionErrors) require(ok bool, format string, args ...any) {
	if !ok {
		*p = append(*p, fmt.Errorf(format, args...))
	}
}

// Validate says everything that is wrong with the options, each named by flag.
func (o *Options) Validate() error {
	var found optionErrors
	_, err := o.enabled()
	found.require(err == nil, "%w", err)
	for _, workers := range []struct {
		flag  string
		value int
	}{
		{"concurrent-rc-syncs", o.ConcurrentRCSyncs},
		{"concurrent-replicaset-syncs", o.ConcurrentReplicaSetSyncs},
		{"concurrent-deployment-syncs", o.ConcurrentDeploymentSyncs},
		{"concurrent-endpoint-syncs", o.ConcurrentEndpointSyncs},
	} {
		found.require(workers.value > 0, "--%s=%d: must be at least 1", workers.flag, workers.value)
	}
	found.require(o.EndpointUpdatesBatchPeriod >= 0, "--endpoint-updates-batch-period=%s: must not be negative", o.EndpointUpdatesBatchPeriod)
	found.require(o.MinResyncPeriod > 0, "--min-resync-period=%s: must be more than 0", o.MinResyncPeriod)
	qps := float64(o.KubeAPIQPS)
	found.require(qps != 0 && !math.IsNaN(qps) && !math.IsInf(qps, 0), "--kube-api-qps=%g: must be a number more than 0, or negative for no limit", qps)
	found.require(o.KubeAPIQPS < 0 || o.KubeAPIBurst > 0, "--kube-api-burst=%d: must be at least 1 with --kube-api-qps=%g", o.KubeAPIBurst, o.KubeAPIQPS)
	found.require(slices.Contains(mediaTypes(), o.KubeAPIContentType), "--kube-api-content-type=%s: must be one of %s", o.KubeAPIContentType, strings.Join(mediaTypes(), ", "))
	return errors.Join(append(found, o.LeaderElection.validate(), o.Serving.validate())...)
}

// mediaTypes returns the media types that objects can be sent in.
func mediaTypes() []string {
	var types []string
	for _, serializer := range scheme.Codecs.SupportedMediaTypes() {
		types = append(types, serializer.MediaType)
	}
	return types
}

func (o *LeaderElectionOptions) validate() error {
	var found optionErrors
	if !o.Enabled {
		return nil
	}
	// A lease says its duration in whole seconds.
	found.require(o.LeaseDuration >= time.Second, "--leader-elect-lease-duration=%s: must be at least 1s", o.LeaseDuration)
	found.require(o.LeaseDuration > o.RenewDeadline, "--leader-elect-renew-deadline=%s: must be less than --leader-elect-lease-duration=%s", o.RenewDeadline, o.LeaseDuration)
	found.require(o.RetryPeriod > 0, "--leader-elect-retry-period=%s: must be more than 0", o.RetryPeriod)
	slowestRetry := time.Duration(leaderelection.JitterFactor * float64(o.RetryPeriod))
	found.require(o.RenewDeadline > slowestRetry, "--leader-elect-retry-period=%s: must, with %g jitter, be less than --leader-elect-renew-deadline=%s",
		o.RetryPeriod, leaderelection.JitterFactor, o.RenewDeadline)
	found.require(o.ResourceLock == resourcelock.LeasesResourceLock, "--leader-elect-resource-lock=%s: must be %s", o.ResourceLock, resourcelock.LeasesResourceLock)
	found.require(o.ResourceName != "", "--leader-elect-resource-name: must not be empty")
	found.require(o.ResourceNamespace != "", "--leader-elect-resource-namespace: must not be empty")
	return errors.Join(found...)
}

func (o *ServingOptions) validate() error {
	var found optionErrors
	found.require(o.SecurePort >= 0 && o.SecurePort <= 65535, "--secure-port=%d: must be from 0 to 65535", o.SecurePort)
	found.require(net.ParseIP(o.BindAddress) != nil, "--bind-address=%s: must be an IP address", o.BindAddress)
	found.require((o.CertFile == "") == (o.KeyFile == ""), "--tls-cert-file and --tls-private-key-file: must be given together")
	return errors.Join(found...)
}

// enabled returns the controllers to run, in the order of the catalogue. A name
// counts more than "*".
func (o *Options) enabled() ([]controllerDescriptor, error) {
	for i, given := range o.Controllers {
		name := strings.TrimPrefix(given, "-")
		if given != "*" && !slices.Contains(Known(), name) {
			return nil, fmt.Errorf("--controllers: %q is not known, expected '*' or one of %s", given, strings.Join(Known(), ", "))
		}
		if given == name && slices.Contains(o.Controllers[i:], "-"+name) || given != name && slices.Contains(o.Controllers[i:], name) {
			return nil, fmt.Errorf("--controllers: %s is both wanted and left out", name)
		}
	}
	var chosen []controllerDescriptor
	for _, e := range catalog {
		if slices.Contains(o.Controllers, e.name) ||
			slices.Contains(o.Controllers, "*") && !slices.Contains(o.Controllers, "-"+e.name) {
			chosen = append(chosen, e)
		}
	}
	return chosen, nil
}
