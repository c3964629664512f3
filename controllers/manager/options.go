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

// Options contains the settings of workload-controller-manager. The flags, their meanings and
// their defaults equal those of kube-controller-manager, with two exceptions: the name of the
// lease, and the paths in ServingOptions.AllowedPaths.
type Options struct {
	// Kubeconfig is the path of a kubeconfig file. If Kubeconfig is empty, the clients use the
	// in-cluster configuration.
	Kubeconfig string
	// Controllers selects the controllers to run. "*" enables all controllers, "name" enables
	// the controller with this name, and "-name" disables it.
	Controllers []string

	// ConcurrentRCSyncs and the next three fields are numbers of worker goroutines: one number
	// for each controller.
	ConcurrentRCSyncs         int
	ConcurrentReplicaSetSyncs int
	ConcurrentDeploymentSyncs int
	ConcurrentEndpointSyncs   int

	// EndpointUpdatesBatchPeriod is the time from a pod change to the update of the Endpoints.
	// One update contains all pod changes within this time.
	EndpointUpdatesBatchPeriod time.Duration
	// MinResyncPeriod is the minimum resync period of the informers. The actual period is a
	// random value between MinResyncPeriod and twice MinResyncPeriod.
	MinResyncPeriod time.Duration

	// KubeAPIQPS is the maximum number of requests per second for each client. A negative value
	// means no limit.
	KubeAPIQPS float32
	// KubeAPIBurst is the number of requests that a client may send at once in excess of
	// KubeAPIQPS.
	KubeAPIBurst int
	// KubeAPIContentType is the media type of requests, such as application/json.
	KubeAPIContentType string

	LeaderElection LeaderElectionOptions
	Serving        ServingOptions
}

// LeaderElectionOptions contains the settings of leader election. Each field has a flag with the
// prefix --leader-elect.
type LeaderElectionOptions struct {
	Enabled           bool
	LeaseDuration     time.Duration
	RenewDeadline     time.Duration
	RetryPeriod       time.Duration
	ResourceLock      string
	ResourceName      string
	ResourceNamespace string
}

// ServingOptions contains the settings of the HTTPS server for health checks and metrics.
type ServingOptions struct {
	BindAddress string
	// SecurePort is the TCP port of the server. 0 means that there is no server.
	SecurePort int
	// CertFile and KeyFile are the paths of PEM files. If both are empty, the server uses a
	// self-signed certificate in the directory CertDir, and creates the certificate if
	// necessary. If CertDir is also empty, the self-signed certificate is only in memory.
	CertFile string
	KeyFile  string
	CertDir  string
	// AllowedPaths lists the only URL paths that the server serves. Clients need no
	// authorization. A path that ends in "*" matches every path with this prefix.
	AllowedPaths []string
}

// NewOptions returns options with the default values of all flags.
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

// AddFlags adds one flag for each option to the flag set. The default value of a flag is the
// option's current value.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "Path to a kubeconfig file. If empty, the in-cluster configuration is used.")
	flags.StringSliceVar(&o.Controllers, "controllers", o.Controllers,
		"Controllers to enable. '*' enables all controllers, 'foo' enables the controller named foo, '-foo' disables it. All controllers: "+strings.Join(ControllerNames(), ", "))
	flags.IntVar(&o.ConcurrentRCSyncs, "concurrent-rc-syncs", o.ConcurrentRCSyncs, "Number of ReplicationControllers that are synced concurrently.")
	flags.IntVar(&o.ConcurrentReplicaSetSyncs, "concurrent-replicaset-syncs", o.ConcurrentReplicaSetSyncs, "Number of ReplicaSets that are synced concurrently.")
	flags.IntVar(&o.ConcurrentDeploymentSyncs, "concurrent-deployment-syncs", o.ConcurrentDeploymentSyncs, "Number of Deployments that are synced concurrently.")
	flags.IntVar(&o.ConcurrentEndpointSyncs, "concurrent-endpoint-syncs", o.ConcurrentEndpointSyncs, "Number of Services whose Endpoints are synced concurrently.")
	flags.DurationVar(&o.EndpointUpdatesBatchPeriod, "endpoint-updates-batch-period", o.EndpointUpdatesBatchPeriod, "How long Endpoints updates wait after a pod change, so that later changes are written together.")
	flags.DurationVar(&o.MinResyncPeriod, "min-resync-period", o.MinResyncPeriod, "Minimum resync period of informers. The actual period is a random value between this period and twice this period.")
	flags.Float32Var(&o.KubeAPIQPS, "kube-api-qps", o.KubeAPIQPS, "Requests per second of each client. A negative value means no limit.")
	flags.IntVar(&o.KubeAPIBurst, "kube-api-burst", o.KubeAPIBurst, "Number of requests of each client that may exceed --kube-api-qps at once.")
	flags.StringVar(&o.KubeAPIContentType, "kube-api-content-type", o.KubeAPIContentType, "Content type of requests to the API server.")
	o.LeaderElection.addFlags(flags)
	o.Serving.addFlags(flags)
}

func (o *LeaderElectionOptions) addFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&o.Enabled, "leader-elect", o.Enabled, "Take part in leader election, and run the controllers only as the leader.")
	flags.DurationVar(&o.LeaseDuration, "leader-elect-lease-duration", o.LeaseDuration, "How long other replicas wait until they acquire a lease that is not renewed.")
	flags.DurationVar(&o.RenewDeadline, "leader-elect-renew-deadline", o.RenewDeadline, "How long the leader retries to renew the lease before it gives up leadership.")
	flags.DurationVar(&o.RetryPeriod, "leader-elect-retry-period", o.RetryPeriod, "Time between attempts to acquire or renew the lease.")
	flags.StringVar(&o.ResourceLock, "leader-elect-resource-lock", o.ResourceLock, "Resource type of the leader-election lock. Must be leases.")
	flags.StringVar(&o.ResourceName, "leader-elect-resource-name", o.ResourceName, "Name of the leader-election lease.")
	flags.StringVar(&o.ResourceNamespace, "leader-elect-resource-namespace", o.ResourceNamespace, "Namespace of the leader-election lease.")
}

func (o *ServingOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.BindAddress, "bind-address", o.BindAddress, "IP address on which health checks and metrics are served.")
	flags.IntVar(&o.SecurePort, "secure-port", o.SecurePort, "HTTPS port on which health checks and metrics are served. 0 disables serving.")
	flags.StringVar(&o.CertFile, "tls-cert-file", o.CertFile, "PEM file with the serving certificate.")
	flags.StringVar(&o.KeyFile, "tls-private-key-file", o.KeyFile, "PEM file with the private key of the serving certificate.")
	flags.StringSliceVar(&o.AllowedPaths, "authorization-always-allow-paths", o.AllowedPaths,
		"Paths that are served, without authorization. No other path is served. A path may end in '*'. /debug/pprof/* is also available.")
	flags.StringVar(&o.CertDir, "cert-dir", o.CertDir, "Directory of the self-signed certificate that is used without --tls-cert-file. If empty, the certificate is kept in memory.")
}

// optionErrors collects the errors that the validation of the options finds.
type optionErrors []error

// require adds an error to the list if the argument ok is false. The error has the given message.
func (p *optionErrors) require(ok bool, format string, args ...any) {
	if !ok {
		*p = append(*p, fmt.Errorf(format, args...))
	}
}

// Validate returns all errors in the options, joined to one error. Each error contains the name
// of a flag.
func (o *Options) Validate() error {
	var errs optionErrors
	_, err := o.enabled()
	errs.require(err == nil, "%w", err)
	for _, workers := range []struct {
		flag  string
		value int
	}{
		{"concurrent-rc-syncs", o.ConcurrentRCSyncs},
		{"concurrent-replicaset-syncs", o.ConcurrentReplicaSetSyncs},
		{"concurrent-deployment-syncs", o.ConcurrentDeploymentSyncs},
		{"concurrent-endpoint-syncs", o.ConcurrentEndpointSyncs},
	} {
		errs.require(workers.value > 0, "--%s=%d: must be at least 1", workers.flag, workers.value)
	}
	errs.require(o.EndpointUpdatesBatchPeriod >= 0, "--endpoint-updates-batch-period=%s: must not be negative", o.EndpointUpdatesBatchPeriod)
	errs.require(o.MinResyncPeriod > 0, "--min-resync-period=%s: must be more than 0", o.MinResyncPeriod)
	qps := float64(o.KubeAPIQPS)
	errs.require(qps != 0 && !math.IsNaN(qps) && !math.IsInf(qps, 0), "--kube-api-qps=%g: must be a number more than 0, or negative for no limit", qps)
	errs.require(o.KubeAPIQPS < 0 || o.KubeAPIBurst > 0, "--kube-api-burst=%d: must be at least 1 with --kube-api-qps=%g", o.KubeAPIBurst, o.KubeAPIQPS)
	errs.require(slices.Contains(mediaTypes(), o.KubeAPIContentType), "--kube-api-content-type=%s: must be one of %s", o.KubeAPIContentType, strings.Join(mediaTypes(), ", "))
	return errors.Join(append(errs, o.LeaderElection.validate(), o.Serving.validate())...)
}

// mediaTypes returns the media types that client-go can encode, such as application/json.
func mediaTypes() []string {
	var types []string
	for _, serializer := range scheme.Codecs.SupportedMediaTypes() {
		types = append(types, serializer.MediaType)
	}
	return types
}

func (o *LeaderElectionOptions) validate() error {
	var errs optionErrors
	if !o.Enabled {
		return nil
	}
	// A Lease stores its duration in whole seconds.
	errs.require(o.LeaseDuration >= time.Second, "--leader-elect-lease-duration=%s: must be at least 1s", o.LeaseDuration)
	errs.require(o.LeaseDuration > o.RenewDeadline, "--leader-elect-renew-deadline=%s: must be less than --leader-elect-lease-duration=%s", o.RenewDeadline, o.LeaseDuration)
	errs.require(o.RetryPeriod > 0, "--leader-elect-retry-period=%s: must be more than 0", o.RetryPeriod)
	slowestRetry := time.Duration(leaderelection.JitterFactor * float64(o.RetryPeriod))
	errs.require(o.RenewDeadline > slowestRetry, "--leader-elect-retry-period=%s: %g times this period (the maximum jitter) must be less than --leader-elect-renew-deadline=%s",
		o.RetryPeriod, leaderelection.JitterFactor, o.RenewDeadline)
	errs.require(o.ResourceLock == resourcelock.LeasesResourceLock, "--leader-elect-resource-lock=%s: must be %s", o.ResourceLock, resourcelock.LeasesResourceLock)
	errs.require(o.ResourceName != "", "--leader-elect-resource-name: must not be empty")
	errs.require(o.ResourceNamespace != "", "--leader-elect-resource-namespace: must not be empty")
	return errors.Join(errs...)
}

func (o *ServingOptions) validate() error {
	var errs optionErrors
	errs.require(o.SecurePort >= 0 && o.SecurePort <= 65535, "--secure-port=%d: must be from 0 to 65535", o.SecurePort)
	errs.require(net.ParseIP(o.BindAddress) != nil, "--bind-address=%s: must be an IP address", o.BindAddress)
	errs.require((o.CertFile == "") == (o.KeyFile == ""), "--tls-cert-file=%s --tls-private-key-file=%s: set both flags, or neither of them", o.CertFile, o.KeyFile)
	return errors.Join(errs...)
}

// enabled returns the descriptors of the controllers that the flag --controllers enables, in the
// order of the variable catalog. A controller's name takes precedence over "*".
func (o *Options) enabled() ([]controllerDescriptor, error) {
	for i, given := range o.Controllers {
		name := strings.TrimPrefix(given, "-")
		if given != "*" && !slices.Contains(ControllerNames(), name) {
			return nil, fmt.Errorf("--controllers: unknown controller %q; expected '*' or one of %s", given, strings.Join(ControllerNames(), ", "))
		}
		if given == name && slices.Contains(o.Controllers[i:], "-"+name) || given != name && slices.Contains(o.Controllers[i:], name) {
			return nil, fmt.Errorf("--controllers: controller %s is both enabled and disabled", name)
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
