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
	// etcdPort is where etcd serves its clients, on the control plane's node.
	etcdPort = 2379
	// pkiDir is where kubeadm puts keys and certificates.
	pkiDir = "/etc/kubernetes/pki/"
	// mendWithin bounds how long the control plane may take to be at work again. A
	// kubelet starts at once what ended for the first time; from the second time
	// on it waits, 10 s and then twice as long each time.
	mendWithin = 3 * time.Minute
)

// Etcd returns a client of the cluster's etcd, who it is to etcd as the API
// server is. It leads through a port of this machine.
func (c *Cluster) Etcd(ctx context.Context) (*clientv3.Client, error) {
	node := c.ControlPlane()
	address, err := node.address(ctx, etcdPort)
	if err != nil {
		return nil, err
	}
	files := map[string]string{"etcd/ca.crt": "", "apiserver-etcd-client.crt": "", "apiserver-etcd-client.key": ""}
	for name := range files {
		if files[name], err = node.Exec(ctx, "cat", pkiDir+name); err != nil {
			return nil, fmt.Errorf("reading what a client of etcd needs: %w", err)
		}
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(files["etcd/ca.crt"]))
	pair, err := tls.X509KeyPair([]byte(files["apiserver-etcd-client.crt"]), []byte(files["apiserver-etcd-client.key"]))
	if err != nil {
		return nil, fmt.Errorf("reading the certificate of etcd's client: %w", err)
	}
	return cluster.DialEtcd("https://"+address, &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})
}

// Halt kills the process of a part, and keeps the kubelet from starting another
// until the part is resumed, by freezing it: a kubelet that is told to leave a
// static pod out, or is stopped, takes minutes to come back to it.
func (c *Cluster) Halt(ctx context.Context, part cluster.Part) error {
	if part != cluster.APIServer && part != cluster.Etcd {
		return fmt.Errorf("no part %q that can be halted: expected %s or %s", part, cluster.APIServer, cluster.Etcd)
	}
	c.breaking.Lock()
	defer c.breaking.Unlock()
	if c.isHalted(part) {
		return nil
	}
	c.setHalted(part, true)
	if _, err := c.ControlPlane().Exec(ctx, "sh", "-c", freezeAndKill, "kill", string(part)); err != nil {
		c.setHalted(part, false)
		if !c.halts() {
			err = errors.Join(err, c.thawKubelet(ctx))
		}
		return fmt.Errorf("halting %s: %w", part, err)
	}
	return nil
}

// freezeAndKill is the shell script that freezes the kubelet and then kills all
// processes of a name, which no others on a node have, and waits until they are
// gone. It needs none of the commands that one node image has and another has not.
const freezeAndKill = `
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

// Resume lets the kubelet start the part again, unless another is still halted:
// what was resumed by then comes back together with that.
func (c *Cluster) Resume(ctx context.Context, part cluster.Part) error {
	c.breaking.Lock()
	defer c.breaking.Unlock()
	if !c.isHalted(part) {
		return nil
	}
	c.setHalted(part, false)
	if c.halts() {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, mendWithin, fmt.Errorf("not within %s", mendWithin))
	defer cancel()
	err := c.thawKubelet(ctx)
	if err == nil {
		err = c.whole(ctx)
	}
	if err != nil {
		return fmt.Errorf("resuming %s: %w", part, err)
	}
	return nil
}

func (c *Cluster) thawKubelet(ctx context.Context) error {
	_, err := c.ControlPlane().Exec(ctx, "systemctl", "kill", "--kill-who=main", "--signal=SIGCONT", "kubelet")
	return err
}

// whole waits until everything answers that is meant to run.
func (c *Cluster) whole(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.Config(cluster.Admin))
	if err != nil {
		return err
	}
	ctx, cancel := c.untilFailed(ctx)
	defer cancel()
	return poll(ctx, "the control plane to be whole", func(ctx context.Context) error {
		c.mu.Lock()
		halted := slices.Sorted(maps.Keys(c.halted))
		c.mu.Unlock()
		if len(halted) > 0 {
			return fmt.Errorf("%v is halted", halted)
		}
		if err := apiServerReady(ctx, client); err != nil {
			return err
		}
		if err := c.nodesReady(ctx, client); err != nil {
			return err
		}
		// Of those that serve the API server has told. What the kubelet says of them
		// is late: it has them wait for a startup probe, every 10 s, while they have
		// long been at work.
		return componentsReady(ctx, client, clients)
	})
}

func (c *Cluster) isHalted(part cluster.Part) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.halted[part]
}

func (c *Cluster) setHalted(part cluster.Part, halted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if halted {
		c.halted[part] = true
	} else {
		delete(c.halted, part)
	}
}

// halts reports whether any part is halted.
func (c *Cluster) halts() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.halted) > 0
}
