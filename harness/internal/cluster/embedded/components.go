package embedded

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// component is one program of the control plane with its command line.
type component struct {
	name      string
	path      string
	args      []string
	healthURL string // returns status 200 if the component is healthy; empty if it has none
	stopGroup int    // one of stopOrder
	// stopGrace is the time between SIGTERM and SIGKILL. A component needs it only to
	// complete its log, because the cluster removes the component's state afterwards.
	stopGrace time.Duration
}

const (
	// stopGrace is longer than the time that the programs take to exit, which is about
	// 20 ms.
	stopGrace = 2 * time.Second
	// apiServerStopGrace is the time that the API server needs to stop serving. SIGKILL
	// follows so early because the API server would otherwise sleep for one second,
	// which would prolong every run.
	apiServerStopGrace = 200 * time.Millisecond
)

// stopOrder is the order in which Stop stops the groups of components.
var stopOrder = []int{stopClients, stopAPIServer, stopEtcd}

const (
	stopClients = iota // clients of the API server
	stopAPIServer
	stopEtcd
)

// The client-side rate limit of the support components, in requests per second and
// burst. It is so high that it never delays a request, because a throttled scheduler
// would be a fault that no scenario contains.
const (
	supportQPS   = 5000
	supportBurst = 10000
)

func etcdComponent(l layout, b Binaries) component {
	client, peer := localURL(l.ports.etcd, ""), localURL(l.ports.etcdPeer, "")
	return component{name: "etcd", path: b.Etcd, stopGroup: stopEtcd, stopGrace: stopGrace, args: []string{
		"--name=gauntlet",
		"--data-dir=" + l.file(etcdData),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=gauntlet=" + peer,
		"--trusted-ca-file=" + l.file(authorityFile),
		"--cert-file=" + l.file(servingCert),
		"--key-file=" + l.file(servingKey),
		"--client-cert-auth=true",
		"--peer-trusted-ca-file=" + l.file(authorityFile),
		"--peer-cert-file=" + l.file(servingCert),
		"--peer-key-file=" + l.file(servingKey),
		"--peer-client-cert-auth=true",
		// The state is removed at the end of the run, so it need not survive a crash of
		// the host.
		"--unsafe-no-fsync=true",
		// A single member elects itself when the election timeout expires.
		"--heartbeat-interval=10",
		"--election-timeout=100",
		"--log-level=warn",
	}}
}

func apiServerComponent(l layout, b Binaries, verbosity int) component {
	return component{
		name: "kube-apiserver", path: b.KubeAPIServer, stopGroup: stopAPIServer, stopGrace: apiServerStopGrace,
		healthURL: localURL(l.ports.apiServer, "/readyz"),
		args: []string{
			"--bind-address=127.0.0.1",
			"--advertise-address=127.0.0.1",
			fmt.Sprintf("--secure-port=%d", l.ports.apiServer),
			"--tls-cert-file=" + l.file(servingCert),
			"--tls-private-key-file=" + l.file(servingKey),
			"--cert-dir=" + l.file(temporary),
			"--etcd-servers=" + localURL(l.ports.etcd, ""),
			"--etcd-cafile=" + l.file(authorityFile),
			"--etcd-certfile=" + l.file(etcdClientCert),
			"--etcd-keyfile=" + l.file(etcdClientKey),
			"--authorization-mode=RBAC",
			"--anonymous-auth=false",
			"--token-auth-file=" + l.file(tokensFile),
			"--service-account-issuer=https://kubernetes.default.svc",
			"--service-account-key-file=" + l.file(accountPubFile),
			"--service-account-signing-key-file=" + l.file(accountKeyFile),
			"--service-cluster-ip-range=10.96.0.0/16,fd00:10:96::/112", // both families
			// The reconciler would write an Endpoints object with a loopback address.
			// The API server rejects it as invalid, and the reconciler retries forever.
			"--endpoint-reconciler-type=none",
			// A subject may have hundreds of concurrent creates. With the default limits
			// it gets about 50 seats of API Priority and Fairness and then status 429,
			// which would be a fault that no scenario contains.
			"--max-requests-inflight=4000",
			"--max-mutating-requests-inflight=4000",
			"--etcd-count-metric-poll-period=0",
			"--etcd-db-metric-poll-interval=0",
			"--profiling=false",
			fmt.Sprintf("-v=%d", verbosity),
		},
	}
}

// unneededControllers are controllers of kube-controller-manager that have nothing to do.
// An embedded cluster has no volumes, metrics, certificate requests or devices. Without
// these controllers it starts faster, and the log of the API server is shorter.
var unneededControllers = []string{
	"horizontal-pod-autoscaler-controller",
	"certificatesigningrequest-signing-controller", "certificatesigningrequest-approving-controller",
	"certificatesigningrequest-cleaner-controller", "podcertificaterequest-cleaner-controller",
	"kube-apiserver-serving-clustertrustbundle-publisher-controller",
	"ttl-controller", "node-ipam-controller", "device-taint-eviction-controller",
	"persistentvolume-binder-controller", "persistentvolume-attach-detach-controller",
	"persistentvolume-expander-controller", "persistentvolumeclaim-protection-controller",
	"persistentvolume-protection-controller", "ephemeral-volume-controller",
	"volumeattributesclass-protection-controller", "selinux-warning-controller",
	"resourceclaim-controller", "legacy-serviceaccount-token-cleaner-controller",
	"storageversion-garbage-collector-controller", "storage-version-migrator-controller",
}

// controllerManagerComponent returns the component that runs all controllers except those
// under test and the unneeded ones.
func controllerManagerComponent(l layout, b Binaries, opts Options) component {
	controllers := []string{"*"}
	for _, name := range slices.Concat(kube.NamesOf(kube.OrDefault(opts.Controllers)), unneededControllers) {
		controllers = append(controllers, "-"+name)
	}
	return component{
		name: "kube-controller-manager", path: b.KubeControllerManager, stopGroup: stopClients, stopGrace: stopGrace,
		healthURL: localURL(l.ports.controllerManager, "/healthz"),
		args: []string{
			"--kubeconfig=" + l.file(supportConfig),
			"--controllers=" + strings.Join(controllers, ","),
			"--leader-elect=false",
			// The node lifecycle controller checks nodes every second (default 5 s). It
			// evicts pods from 10 nodes per second (default 0.1). The grace period has
			// its default, because simulated kubelets may be slow on a busy machine.
			"--node-monitor-period=1s",
			"--node-eviction-rate=10",
			"--bind-address=127.0.0.1",
			fmt.Sprintf("--secure-port=%d", l.ports.controllerManager),
			"--tls-cert-file=" + l.file(servingCert),
			"--tls-private-key-file=" + l.file(servingKey),
			"--service-account-private-key-file=" + l.file(accountKeyFile),
			"--root-ca-file=" + l.file(authorityFile),
			fmt.Sprintf("--kube-api-qps=%d", supportQPS),
			fmt.Sprintf("--kube-api-burst=%d", supportBurst),
			"--kube-api-content-type=application/vnd.kubernetes.protobuf",
			"--profiling=false",
			fmt.Sprintf("-v=%d", opts.Verbosity),
		},
	}
}

func schedulerComponent(l layout, b Binaries, verbosity int) component {
	return component{
		name: "kube-scheduler", path: b.KubeScheduler, stopGroup: stopClients, stopGrace: stopGrace,
		healthURL: localURL(l.ports.scheduler, "/healthz"),
		args: []string{
			"--config=" + l.file(schedulerConfig),
			"--bind-address=127.0.0.1",
			fmt.Sprintf("--secure-port=%d", l.ports.scheduler),
			"--tls-cert-file=" + l.file(servingCert),
			"--tls-private-key-file=" + l.file(servingKey),
			fmt.Sprintf("-v=%d", verbosity),
		},
	}
}

// schedulerConfiguration returns the settings of the scheduler that have no flags.
func (l layout) schedulerConfiguration() []byte {
	return fmt.Appendf(nil, `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: false
clientConnection:
  kubeconfig: %q
  contentType: application/vnd.kubernetes.protobuf
  qps: %d
  burst: %d
enableProfiling: false
`, l.file(supportConfig), supportQPS, supportBurst)
}

// kwokComponent returns the component of KWOK. It has no health endpoint, because KWOK
// works if its process runs and the nodes are Ready.
func kwokComponent(l layout, b Binaries) component {
	return component{name: "kwok", path: b.KWOK, stopGroup: stopClients, stopGrace: stopGrace, args: []string{
		"--kubeconfig=" + l.file(supportConfig),
		"--config=" + quoteList(l.file(kwokConfig)),
		"--manage-nodes-with-label-selector=!" + silentLabel,
		"--node-lease-duration-seconds=40",
		"--cidr=10.128.0.1/14",
		"--v=WARN",
	}}
}

// quoteList quotes a single value for a flag that takes a comma-separated list.
// The flag parses its value as CSV.
func quoteList(value string) string {
	return `"` + strings.ReplaceAll(value, `"`, `""`) + `"`
}
