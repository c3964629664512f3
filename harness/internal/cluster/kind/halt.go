package kind

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

var _ cluster.Restartable = (*Cluster)(nil)

const (
	// etcdPort is the client port of etcd on the control plane node.
	etcdPort = 2379
	// pkiDir is the directory on the control plane node with the keys and certificates that kubeadm
	// creates.
	pkiDir = "/etc/kubernetes/pki/"
	// recoveryTimeout limits how long methods such as Resume and StartNode wait until the control
	// plane or a node is healthy.
	//
	// The timeout is long because of the kubelet's back-off. The kubelet restarts a container
	// immediately after the container's first exit. After further exits, it waits 10 s, 20 s, 40 s
	// and so on.
	recoveryTimeout = 3 * time.Minute
)

// Etcd returns a client of the cluster's etcd. The client authenticates with the same client
// certificate as the API server. It connects to a port of this machine, which the container engine
// forwards to etcd.
func (c *Cluster) Etcd(ctx context.Context) (*clientv3.Client, error) {
	node := c.controlPlane()
	address, err := node.address(ctx, etcdPort)
	if err != nil {
		return nil, err
	}
	files := map[string]string{"etcd/ca.crt": "", "apiserver-etcd-client.crt": "", "apiserver-etcd-client.key": ""}
	for name := range files {
		if files[name], err = node.Exec(ctx, "cat", pkiDir+name); err != nil {
			return nil, fmt.Errorf("reading %s from the control plane node: %w", pkiDir+name, err)
		}
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(files["etcd/ca.crt"]))
	pair, err := tls.X509KeyPair([]byte(files["apiserver-etcd-client.crt"]), []byte(files["apiserver-etcd-client.key"]))
	if err != nil {
		return nil, fmt.Errorf("reading the client certificate for etcd: %w", err)
	}
	return cluster.DialEtcd("https://"+address, &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})
}

// Halt kills kube-apiserver or etcd with SIGKILL, and pauses the kubelet of the control plane
// node. The paused kubelet does not restart the component until Resume.
//
// Halt neither stops the kubelet nor removes the component's static pod, because Resume would then
// take minutes.
func (c *Cluster) Halt(ctx context.Context, part cluster.Component) error {
	if part != cluster.APIServer && part != cluster.Etcd {
		return fmt.Errorf("component %q cannot be halted: expected %s or %s", part, cluster.APIServer, cluster.Etcd)
	}
	c.halting.Lock()
	defer c.halting.Unlock()
	if c.isHalted(part) {
		return nil
	}
	c.setHalted(part, true)
	if _, err := c.ControlPlane().Exec(ctx, "sh", "-c", pauseKubeletAndKill, "kill", string(part)); err != nil {
		c.setHalted(part, false)
		if !c.anyHalted() {
			err = errors.Join(err, c.resumeKubelet(ctx))
		}
		return fmt.Errorf("halting %s: %w", part, err)
	}
	return nil
}

// pauseKubeletAndKill is a shell script that pauses the kubelet and kills all processes named $1.
// The script waits until these processes have exited. It uses only commands that every node image
// contains.
const pauseKubeletAndKill = `
systemctl kill --kill-who=main --signal=SIGSTOP kubelet || exit
found=
for process in /proc/[0-9]*; do
	[ "$(cat $process/comm 2>/dev/null)" = "$1" ] || continue
	kill -KILL ${process#/proc/}
	found="$found $process"
done
[ -n "$found" ] || { echo "no process $1" >&2; exit 1; }
for process in $found; do
	while [ "$(cat $process/comm 2>/dev/null)" = "$1" ]; do sleep 0.05; done
done`

// Resume resumes the kubelet that Halt has paused, and waits until the cluster is healthy. The
// kubelet restarts the component.
//
// If kube-apiserver and etcd are both halted, the first call returns at once, and the kubelet stays
// paused. The second call resumes the kubelet, which restarts both components.
func (c *Cluster) Resume(ctx context.Context, part cluster.Component) error {
	c.halting.Lock()
	defer c.halting.Unlock()
	if !c.isHalted(part) {
		return nil
	}
	c.setHalted(part, false)
	if c.anyHalted() {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, recoveryTimeout, fmt.Errorf("the control plane did not recover within %s", recoveryTimeout))
	defer cancel()
	err := c.resumeKubelet(ctx)
	if err == nil {
		err = c.awaitHealthy(ctx)
	}
	if err != nil {
		return fmt.Errorf("resuming %s: %w", part, err)
	}
	return nil
}

// resumeKubelet resumes the kubelet of the control plane node, which Halt has paused.
func (c *Cluster) resumeKubelet(ctx context.Context) error {
	_, err := c.ControlPlane().Exec(ctx, "systemctl", "kill", "--kill-who=main", "--signal=SIGCONT", "kubelet")
	return err
}

// awaitHealthy waits until no component is halted, and all components and nodes are healthy. Nodes
// that a fault has killed, paused or cut off do not count.
func (c *Cluster) awaitHealthy(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.Config(cluster.Admin))
	if err != nil {
		return err
	}
	ctx, cancel := c.untilFailed(ctx)
	defer cancel()
	return poll(ctx, "the control plane to be healthy", func(ctx context.Context) error {
		c.mu.Lock()
		halted := slices.Sorted(maps.Keys(c.halted))
		c.mu.Unlock()
		if len(halted) > 0 {
			return fmt.Errorf("components %v are halted by a fault; expected no halted component", halted)
		}
		if err := apiServerReady(ctx, client); err != nil {
			return err
		}
		if err := c.nodesReady(ctx, client); err != nil {
			return err
		}
		// The check of /readyz has already covered kube-apiserver and etcd. Their pods become Ready
		// later, because the kubelet runs startup probes only every 10 s.
		return componentsReady(ctx, client, clients)
	})
}

// isHalted reports whether Halt has killed a component and Resume has not started that component
// again.
func (c *Cluster) isHalted(part cluster.Component) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.halted[part]
}

// setHalted stores whether a component is halted. Halt stores true, and Resume stores false.
func (c *Cluster) setHalted(part cluster.Component, halted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if halted {
		c.halted[part] = true
	} else {
		delete(c.halted, part)
	}
}

// anyHalted reports whether Halt has killed kube-apiserver or etcd, and Resume has not started it
// again. The kubelet of the control plane node stays paused in the meantime.
func (c *Cluster) anyHalted() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.halted) > 0
}
