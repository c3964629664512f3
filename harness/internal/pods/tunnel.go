package pods

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kube-gauntlet/gauntlet/faults/relay"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

// These are the first ports of the relays, which connect the programs under test to the fault
// proxy. The pods use the node's network, so each relay needs ports of its own. The relay of
// replica i listens on two ports:
//
//   - 127.0.0.1:subjectPort+i, for the program under test
//   - 0.0.0.0:controlPort+i, for gauntlet
const (
	subjectPort = 10800
	controlPort = 10900
)

// Ports returns the ports of the control plane node to which gauntlet connects: one port for
// each replica's relay. A provider must forward a local port to each of these ports.
func Ports(replicas int) []int {
	var ports []int
	for i := range replicas {
		ports = append(ports, controlPort+i)
	}
	return ports
}

// replicaTunnel contains the certificates and addresses that connect a replica to the fault
// proxy. They stay the same when the replica restarts.
type replicaTunnel struct {
	replica   string // name of the replica
	index     int    // number at the end of replica, such as 0 for subject-0
	instances int    // number of instances started so far

	identity     relay.Identity // certificate and key of gauntlet for the relay
	proxyAddress string         // host:port of the fault proxy's listener for the replica
}

// indexOf returns the number at the end of a replica's name, such as 0 for subject-0. This number
// determines the ports of the replica's relay.
func indexOf(replica string) (int, error) {
	_, number, _ := strings.Cut(replica, "-")
	index, err := strconv.Atoi(number)
	if err != nil || index < 0 {
		return 0, fmt.Errorf("replica %q: expected a name such as subject-0", replica)
	}
	return index, nil
}

// newTunnel creates the certificates and addresses that connect a replica to the fault proxy. Call
// newTunnel once, before the replica's first instance starts.
//
// newTunnel calls r.Route to get the address of the fault proxy's listener for the replica. It also
// creates the Secrets with the certificates, which the replica's pods mount.
func (r *relayLauncher) newTunnel(ctx context.Context, replica string) (*replicaTunnel, error) {
	index, err := indexOf(replica)
	if err != nil {
		return nil, err
	}
	config := &rest.Config{}
	if err := r.Route(replica, config); err != nil {
		return nil, fmt.Errorf("connecting replica %s to the fault proxy: %w", replica, err)
	}
	proxy, err := url.Parse(config.Host)
	if err != nil {
		return nil, fmt.Errorf("parsing the address of the fault proxy for replica %s: %w", replica, err)
	}
	pod, run, err := relay.NewPair(replica, r.Clock.Now())
	if err != nil {
		return nil, err
	}
	// The subject connects to the relay at 127.0.0.1, and the relay forwards the connection to the
	// fault proxy. The certificate of the fault proxy is valid for 127.0.0.1, so the subject
	// accepts it.
	kubeconfig, err := kubeconfigOf(fmt.Sprintf("https://127.0.0.1:%d", subjectPort+index), config.CAData)
	if err != nil {
		return nil, err
	}
	if err := r.writeSecret(ctx, configSecret(replica), map[string][]byte{kubeconfigFile: kubeconfig}); err != nil {
		return nil, err
	}
	if err := r.writeSecret(ctx, relaySecret(replica), pod.Files()); err != nil {
		return nil, err
	}
	return &replicaTunnel{replica: replica, index: index, identity: run, proxyAddress: proxy.Host}, nil
}

// kubeconfigOf returns a kubeconfig with which a replica authenticates by its ServiceAccount token.
// The argument server is the URL of the API server or of the relay. The argument ca is the CA
// certificate, as PEM, that signed the certificate of this server.
func kubeconfigOf(server string, ca []byte) ([]byte, error) {
	return cluster.Kubeconfig(&rest.Config{
		Host: server, BearerTokenFile: tokenDir + "/" + tokenFile, TLSClientConfig: rest.TLSClientConfig{CAData: ca},
	})
}

// connect connects the relay of a replica to the fault proxy, and waits until the relay is ready.
// It returns the connection as a tunnel.
//
// The argument onLost is a callback: the tunnel calls it each time an idle connection to the relay
// breaks.
func (r *relayLauncher) connect(ctx context.Context, t *replicaTunnel, onLost func(error)) (*relay.Tunnel, error) {
	tunnel, err := relay.Connect(ctx, relay.TunnelOptions{
		Name:     t.replica,
		Identity: t.identity,
		Relay:    func(ctx context.Context) (net.Conn, error) { return r.Node.Dial(ctx, controlPort+t.index) },
		Proxy: func(ctx context.Context) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", t.proxyAddress)
		},
		OnLost: onLost,
	})
	if err != nil {
		return nil, err
	}
	if err := tunnel.WaitReady(ctx); err != nil {
		tunnel.Close()
		return nil, err
	}
	return tunnel, nil
}

// prepare creates the namespace and the ServiceAccount of the replicas, unless they exist.
func (o *Options) prepare(ctx context.Context) error {
	_, err := o.Admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating Namespace %s: %w", Namespace, err)
	}
	off := false
	_, err = o.Admin.CoreV1().ServiceAccounts(Namespace).Create(ctx, &corev1.ServiceAccount{
		ObjectMeta:                   metav1.ObjectMeta{Name: account},
		AutomountServiceAccountToken: &off,
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating ServiceAccount %s/%s: %w", Namespace, account, err)
	}
	return nil
}

// writeSecret creates a Secret in [Namespace]. The argument files maps file names to contents.
func (o *Options) writeSecret(ctx context.Context, name string, files map[string][]byte) error {
	_, err := o.Admin.CoreV1().Secrets(Namespace).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Data: files,
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating Secret %s/%s: %w", Namespace, name, err)
	}
	return nil
}
