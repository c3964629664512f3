package embedded

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// component says how to run one program of the control plane, such as etcd.
type component struct {
	name      string   // such as "kube-apiserver"; also the name of the log file
	path      string   // path of the executable
	args      []string // command line arguments
	healthURL string   // responds with status 200 if the component is healthy; empty for components without a health endpoint
	stopGroup int      // when Stop stops the component: stopClients, stopAPIServer or stopEtcd
	// stopGrace is the time between SIGTERM and SIGKILL when the cluster stops. In this time, the
	// component writes the end of its log. The component need not save data, because Stop removes
	// the data.
	stopGrace time.Duration
}

const (
	// stopGrace is the time between SIGTERM and SIGKILL for all components except kube-apiserver.
	// These components usually exit about 20 ms after SIGTERM.
	stopGrace = 2 * time.Second
	// apiServerStopGrace is the time between SIGTERM and SIGKILL for kube-apiserver. Within this
	// time, kube-apiserver stops serving. It would then sleep for one second before it exits.
	// SIGKILL ends this sleep, so that runs end faster.
	apiServerStopGrace = 200 * time.Millisecond
)

// stopOrder lists the groups of components in the order in which Stop stops them.
var stopOrder = []int{stopClients, stopAPIServer, stopEtcd}

// These are the groups of components. Stop stops all components of one group at the same time, and
// the groups in the order of stopOrder.
const (
	stopClients   = iota // the clients of the API server: scheduler, kube-controller-manager and KWOK
	stopAPIServer        // kube-apiserver, which Stop stops after its clients
	stopEtcd             // etcd, which Stop stops last
)

// The client-side rate limit of kube-scheduler and kube-controller-manager: requests per second,
// and burst. The limit is so high that it never delays a request, because only faults may delay
// requests in a run.
const (
	supportQPS   = 5000
	supportBurst = 10000
)

// etcdComponent returns the component that runs etcd, as a cluster with one member.
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
		// The data need not survive a crash of the machine, because Stop removes the data.
		"--unsafe-no-fsync=true",
		// A single etcd member becomes the leader only after the election timeout, so a short
		// timeout (in ms) makes the start faster.
		"--heartbeat-interval=10",
		"--election-timeout=100",
		"--log-level=warn",
	}}
}

// apiServerComponent returns the component that runs kube-apiserver, with RBAC and static tokens.
func apiServerComponent(l layout, b Binaries, opts Options) component {
	return component{
		name: "kube-apiserver", path: b.KubeAPIServer, stopGroup: stopAPIServer, stopGrace: apiServerStopGrace,
		healthURL: localURL(l.ports.apiServer, "/readyz"),
		args: append([]string{
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
			"--service-cluster-ip-range=10.96.0.0/16,fd00:10:96::/112", // IPv4 and IPv6
			// The reconciler would write an Endpoints object with a loopback address. The API
			// server would reject this object as invalid, and the reconciler would retry forever.
			"--endpoint-reconciler-type=none",
			// A subject may send hundreds of creates at the same time. API Priority and Fairness would
			// grant the subject about 50 seats. Further requests would wait or fail with status 429,
			// although the scenario contains no such fault. It also costs an eighth of the CPU time
			// until kube-apiserver is ready.
			"--enable-priority-and-fairness=false",
			"--max-requests-inflight=4000",
			"--max-mutating-requests-inflight=4000",
			"--etcd-count-metric-poll-period=0",
			"--etcd-db-metric-poll-interval=0",
			"--profiling=false",
			fmt.Sprintf("-v=%d", opts.Verbosity),
		}, l.auditArgs(opts.AuditLog)...),
	}
}

// unneededControllers lists controllers of kube-controller-manager that have nothing to do in an
// embedded cluster. By default, such a cluster has no volumes, metrics, certificate requests or
// devices. A cluster with simulated volumes (Options.Volumes) nevertheless runs those controllers
// that [volumeControllers] lists.
//
// Without the unneeded controllers, a cluster starts faster and the log of the API server is
// shorter.
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

// controllerManagerComponent returns the component that runs kube-controller-manager. This program
// runs all default controllers except the controllers under test and [unneededControllers]. With
// Options.Volumes, it also runs [volumeControllers].
func controllerManagerComponent(l layout, b Binaries, opts Options) component {
	controllers := []string{"*"}
	for _, name := range slices.Concat(kube.NamesOf(kube.OrDefault(opts.Controllers)), unneededControllers) {
		if opts.Volumes && slices.Contains(volumeControllers, name) {
			continue
		}
		controllers = append(controllers, "-"+name)
	}
	return component{
		name: "kube-controller-manager", path: b.KubeControllerManager, stopGroup: stopClients, stopGrace: stopGrace,
		healthURL: localURL(l.ports.controllerManager, "/healthz"),
		args: []string{
			"--kubeconfig=" + l.file(supportConfig),
			"--controllers=" + strings.Join(controllers, ","),
			"--leader-elect=false",
			// The node lifecycle controller checks the nodes every second (default 5 s) and evicts
			// pods from 10 nodes per second (default 0.1), so that runs are short.
			// --node-monitor-grace-period keeps its default, because KWOK may renew node
			// Leases late on a busy machine.
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

// schedulerComponent returns the component that runs kube-scheduler.
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

// schedulerConfiguration returns the content of kube-scheduler's configuration file. The file
// contains the settings for which kube-scheduler has no flags.
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

// kwokComponent returns the component that runs KWOK, which simulates the kubelets. The component
// has no healthURL: KWOK counts as healthy while its process runs.
func kwokComponent(l layout, b Binaries) component {
	return component{name: "kwok", path: b.KWOK, stopGroup: stopClients, stopGrace: stopGrace, args: []string{
		"--kubeconfig=" + l.file(kubeletConfig),
		"--config=" + quoteList(l.file(kwokConfig)),
		"--manage-nodes-with-label-selector=!" + silentLabel,
		"--node-lease-duration-seconds=40",
		"--cidr=10.128.0.1/14",
		"--v=WARN",
	}}
}

// quoteList quotes a value for a flag that parses a comma-separated list, such as --config of KWOK.
// The flag then reads the value as one element, even if the value contains commas.
func quoteList(value string) string {
	return `"` + strings.ReplaceAll(value, `"`, `""`) + `"`
}
