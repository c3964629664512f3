package embedded

import (
	"fmt"
	"net"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/internal/process"
)

// layout contains the directories and the ports that one embedded cluster uses.
type layout struct {
	dir    string // directory for the state of the cluster, such as etcd's data
	logDir string // directory of the log files
	ports  ports
}

// ports contains the TCP ports on 127.0.0.1 on which the components listen.
type ports struct {
	etcd, etcdPeer, apiServer, controllerManager, scheduler int
}

// freePorts returns TCP ports on 127.0.0.1 that are free at the moment.
//
// Another process may bind such a port before the component does. [Start] then tries again with
// other ports.
func freePorts() (ports, error) {
	var p ports
	for _, port := range []*int{&p.etcd, &p.etcdPeer, &p.apiServer, &p.controllerManager, &p.scheduler} {
		listener, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			return ports{}, fmt.Errorf("finding a free port on 127.0.0.1: %w", err)
		}
		defer listener.Close() // the listeners stay open until freePorts returns, so that all ports are distinct
		*port = listener.Addr().(*net.TCPAddr).Port
	}
	return p, nil
}

// localURL returns the URL of a component on this machine, such as https://127.0.0.1:6443/readyz.
func localURL(port int, path string) string {
	return fmt.Sprintf("https://127.0.0.1:%d%s", port, path)
}

// apiServerURL returns the API server's URL for clients on this machine, such as
// https://127.0.0.1:6443.
func (l layout) apiServerURL() string { return localURL(l.ports.apiServer, "") }

// The names of the files and directories in an embedded cluster's state directory.
const (
	authorityFile   = "ca.crt"
	servingCert     = "serving.crt"
	servingKey      = "serving.key"
	etcdClientCert  = "etcd-client.crt"
	etcdClientKey   = "etcd-client.key"
	accountKeyFile  = "service-account.key"
	accountPubFile  = "service-account.pub"
	tokensFile      = "tokens.csv"
	supportConfig   = "support.kubeconfig"
	kubeletConfig   = "kubelet.kubeconfig"
	schedulerConfig = "kube-scheduler.yaml"
	auditPolicyFile = "audit-policy.yaml"
	kwokConfig      = "kwok.yaml"
	etcdData        = "etcd" // directory of etcd's data
	temporary       = "tmp"  // directory for temporary files of the components
)

// file returns the path of the named file in the state directory, such as that of ca.crt.
func (l layout) file(name string) string { return filepath.Join(l.dir, name) }

// write writes configuration files, keys and tokens to the state directory. The components read
// these files. The files have mode 0600, because many of them contain secrets.
func (l layout) write(opts Options, creds *credentials) error {
	stages, err := renderStages(opts)
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{
		authorityFile: creds.authorityPEM,
		servingCert:   creds.serving.Certificate, servingKey: creds.serving.Key,
		etcdClientCert: creds.etcdClient.Certificate, etcdClientKey: creds.etcdClient.Key,
		accountKeyFile: creds.accountKey, accountPubFile: creds.accountPub,
		tokensFile:      creds.tokens.File(),
		schedulerConfig: l.schedulerConfiguration(),
		auditPolicyFile: []byte(auditPolicy),
		kwokConfig:      stages,
	} {
		if err := os.WriteFile(l.file(name), data, 0o600); err != nil {
			return fmt.Errorf("writing file %s of the embedded cluster: %w", l.file(name), err)
		}
	}
	if err := os.Mkdir(l.file(temporary), 0o700); err != nil {
		return fmt.Errorf("creating the temporary directory of the embedded cluster: %w", err)
	}
	for name, role := range map[string]cluster.Role{supportConfig: cluster.Support, kubeletConfig: cluster.Kubelet} {
		err := cluster.WriteKubeconfig(l.file(name), &rest.Config{
			Host: l.apiServerURL(), BearerToken: creds.tokens[role],
			TLSClientConfig: rest.TLSClientConfig{CAFile: l.file(authorityFile)},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// spec returns the command line, environment and log file of a component's process.
//
// The environment contains no variables of the user; HOME is the state directory. GOGC and
// GOMEMLIMIT make Go collect garbage less often. This costs memory, but saves CPU time, so that
// a cluster starts and creates pods faster.
func (l layout) spec(c component) process.Spec {
	return process.Spec{
		Name: c.name, Path: c.path, Args: c.args, Dir: l.dir,
		Env:     []string{"HOME=" + l.dir, "TMPDIR=" + l.file(temporary), "GOGC=400", "GOMEMLIMIT=1GiB"},
		LogPath: filepath.Join(l.logDir, c.name+".log"),
	}
}
