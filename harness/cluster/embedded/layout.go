package embedded

import (
	"fmt"
	"net"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/process"
)

// layout is where everything of one cluster is: its files and its ports.
type layout struct {
	dir    string // the state
	logDir string
	ports  ports
}

// ports is a port on 127.0.0.1 for each listener.
type ports struct {
	etcd, etcdPeer, apiServer, controllerManager, scheduler int
}

// freePorts picks ports that are free now. Another process may take one before
// the component binds it; Start then begins anew with others.
func freePorts() (ports, error) {
	var p ports
	for _, port := range []*int{&p.etcd, &p.etcdPeer, &p.apiServer, &p.controllerManager, &p.scheduler} {
		listener, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			return ports{}, fmt.Errorf("looking for a free port on 127.0.0.1: %w", err)
		}
		defer listener.Close() // at the end, so that no two are the same
		*port = listener.Addr().(*net.TCPAddr).Port
	}
	return p, nil
}

func localURL(port int, path string) string {
	return fmt.Sprintf("https://127.0.0.1:%d%s", port, path)
}

func (l layout) apiServerURL() string { return localURL(l.ports.apiServer, "") }

// The names of the files in the state directory.
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
	schedulerConfig = "kube-scheduler.yaml"
	kwokConfig      = "kwok.yaml"
	etcdData        = "etcd"
	temporary       = "tmp"
)

func (l layout) file(name string) string { return filepath.Join(l.dir, name) }

// write makes the state directory's files. All of them are for their owner
// alone: half hold secrets, and nobody needs the other half.
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
		kwokConfig:      stages,
	} {
		if err := os.WriteFile(l.file(name), data, 0o600); err != nil {
			return fmt.Errorf("writing the cluster's files: %w", err)
		}
	}
	if err := os.Mkdir(l.file(temporary), 0o700); err != nil {
		return fmt.Errorf("writing the cluster's files: %w", err)
	}
	return cluster.WriteKubeconfig(l.file(supportConfig), &rest.Config{
		Host: l.apiServerURL(), BearerToken: creds.tokens[cluster.Support],
		TLSClientConfig: rest.TLSClientConfig{CAFile: l.file(authorityFile)},
	})
}

// spec is how to start a component. No configuration of the user's may reach
// it, so its environment is a home of its own, and memory traded for speed: the
// start and a burst of pods are bound by CPU, a good part of it collecting
// garbage.
func (l layout) spec(c component) process.Spec {
	return process.Spec{
		Name: c.name, Path: c.path, Args: c.args, Dir: l.dir,
		Env:     []string{"HOME=" + l.dir, "TMPDIR=" + l.file(temporary), "GOGC=400", "GOMEMLIMIT=1GiB"},
		LogPath: filepath.Join(l.logDir, c.name+".log"),
	}
}
