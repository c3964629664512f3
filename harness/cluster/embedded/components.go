package embedded

import (
	"fmt"
	"strings"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

// component is one program of the control plane and how it is run.
type component struct {
	name      string
	path      string
	args      []string
	healthURL string // answers 200 when it is well; empty when it has none
	stopWave  int    // one of stopWaves
	// stopGrace is how long it may take to end by itself before it is killed.
	// It is there for the log to be complete: the state is thrown away.
	stopGrace time.Duration
}

const (
	// stopGrace is ample: the programs end within some 20 ms.
	stopGrace = 2 * time.Second
	// apiServerStopGrace is when the API server has stopped to serve. It would
	// go on to sleep for a second, which is a second of every run.
	apiServerStopGrace = 200 * time.Millisecond
)

// stopWaves is the order in which the components are stopped.
var stopWaves = []int{waveClients, waveAPIServer, waveEtcd}

const (
	waveClients = iota
	waveAPIServer
	waveEtcd
)

// The rate that support components may call the API server at, requests/s and
// burst: in effect none, since a throttled scheduler would be a fault that no
// scenario asked for.
const (
	supportQPS   = 5000
	supportBurst = 10000
)

func etcdComponent(l layout, b Binaries) component {
	client, peer := localURL(l.ports.etcd, ""), localURL(l.ports.etcdPeer, "")
	return component{name: "etcd", path: b.Etcd, stopWave: waveEtcd, stopGrace: stopGrace, args: []string{
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
		// The state is thrown away with the run; a crash of the host ends both.
		"--unsafe-no-fsync=true",
		// A single member elects itself as soon as the time-out lets it.
		"--heartbeat-interval=10",
		"--election-timeout=100",
		"--log-level=warn",
	}}
}

func apiServerComponent(l layout, b Binaries, verbosity int) component {
	return component{
		name: "kube-apiserver", path: b.KubeAPIServer, stopWave: waveAPIServer, stopGrace: apiServerStopGrace,
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
			// It would publish an Endpoints on a loopback address, which is not
			// valid, and try again for ever.
			"--endpoint-reconciler-type=none",
			// A subject may have hundreds of creates under way at once. With the
			// default limits its share is some 50 seats, and the server would
			// answer 429: a fault that no scenario asked for.
			"--max-requests-inflight=4000",
			"--max-mutating-requests-inflight=4000",
			"--etcd-count-metric-poll-period=0",
			"--etcd-db-metric-poll-interval=0",
			"--profiling=false",
			fmt.Sprintf("-v=%d", verbosity),
		},
	}
}

// idleControllers would only watch and wait: there are no volumes, no metrics,
// no certificates to sign and no devices on a simulated node. Leaving them out
// makes the start faster and the API server's log about the run.
var idleControllers = []string{
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

func controllerManagerComponent(l layout, b Binaries, verbosity int) component {
	controllers := []string{"*"}
	for _, name := range append(append([]string{}, cluster.SubjectControllers...), idleControllers...) {
		controllers = append(controllers, "-"+name)
	}
	return component{
		name: "kube-controller-manager", path: b.KubeControllerManager, stopWave: waveClients, stopGrace: stopGrace,
		healthURL: localURL(l.ports.controllerManager, "/healthz"),
		args: []string{
			"--kubeconfig=" + l.file(supportConfig),
			"--controllers=" + strings.Join(controllers, ","),
			"--leader-elect=false",
			// A node that falls silent or comes back is seen to within a second, one
			// after the other, in place of 5 s and 10 s. How long a silence may last
			// stays as it is: simulated kubelets starve on a machine that is busy.
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
			fmt.Sprintf("-v=%d", verbosity),
		},
	}
}

func schedulerComponent(l layout, b Binaries, verbosity int) component {
	return component{
		name: "kube-scheduler", path: b.KubeScheduler, stopWave: waveClients, stopGrace: stopGrace,
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

// schedulerConfiguration is what the scheduler takes from a file only.
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

// kwokComponent serves nothing: that it lives, and that the nodes are Ready, is
// all there is to know of it.
func kwokComponent(l layout, b Binaries) component {
	return component{name: "kwok", path: b.KWOK, stopWave: waveClients, stopGrace: stopGrace, args: []string{
		"--kubeconfig=" + l.file(supportConfig),
		"--config=" + quoteList(l.file(kwokConfig)),
		"--manage-nodes-with-label-selector=!" + silentLabel,
		"--node-lease-duration-seconds=40",
		"--cidr=10.128.0.1/14",
		"--v=WARN",
	}}
}

// quoteList makes one value of a flag that takes a list of values, separated by commas
// and quoted as in a file of comma-separated values.
func quoteList(value string) string {
	return `"` + strings.ReplaceAll(value, `"`, `""`) + `"`
}
