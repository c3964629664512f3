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

// The relay of replica number i listens on two ports of the node, because the pods use its
// network. The subject connects to subjectPort+i of the loopback address, and gauntlet to
// controlPort+i.
const (
	subjectPort = 10800
	controlPort = 10900
)

// Ports returns the ports of the control plane node to which gauntlet connects, one for the relay
// of each replica. A provider forwards a local port to each of them.
func Ports(replicas int) []int {
	var ports []int
	for i := range replicas {
		ports = append(ports, controlPort+i)
	}
	return ports
}

// replicaTunnel has the certificates and addresses with which a replica connects to the fault
// proxy. They stay the same when the replica restarts.
type replicaTunnel struct {
	replica   string // name of the replica
	index     int    // number at the end of the name
	instances int    // number of instances started so far

	identity     relay.Identity // certificate and key with which gauntlet connects to the relay
	proxyAddress string         // host:port of the fault proxy's listener for the replica
}

// indexOf returns the number at the end of a replica's name, such as 0 for subject-0.
func indexOf(replica string) (int, error) {
	_, number, _ := strings.Cut(replica, "-")
	index, err := strconv.Atoi(number)
	if err != nil || index < 0 {
		return 0, fmt.Errorf("replica %q: expected a name such as subject-0", replica)
	}
	return index, nil
}

// newTunnel creates the replicaTunnel of a replica, before its first instance starts.
//
// It calls r.Route to get the address of the fault proxy's listener for the replica. It also
// creates the certificates of the relay, and the Secrets that the pods of the replica mount.
func (r *relayLauncher) newTunnel(ctx context.Context, replica string) (*replicaTunnel, error) {
	index, err := indexOf(replica)
	if err != nil {
		return nil, err
	}
	config := &rest.Config{}
	if err := r.Route(replica, config); err != nil {
		return nil, fmt.Errorf("setting up the connection of %s to the API server: %w", replica, err)
	}
	proxy, err := url.Parse(config.Host)
	if err != nil {
		return nil, fmt.Errorf("parsing the address of the fault proxy: %w", err)
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

// kubeconfigOf returns a kubeconfig for a replica, which authenticates with its ServiceAccount
// token. The argument server is the URL of the API server or of the relay, and ca the PEM
// certificate that signs the server's certificate.
func kubeconfigOf(server string, ca []byte) ([]byte, error) {
	return cluster.Kubeconfig(&rest.Config{
		Host: server, BearerTokenFile: tokenDir + "/" + tokenFile, TLSClientConfig: rest.TLSClientConfig{CAData: ca},
	})
}

// connect connects the relay of a replica to the fault proxy, and waits until the relay is
// ready.
//
// After that, it calls lost each time an idle connection to the relay breaks.
func (r *relayLauncher) connect(ctx context.Context, t *replicaTunnel, lost func(error)) (*relay.Tunnel, error) {
	tunnel, err := relay.Connect(ctx, relay.TunnelOptions{
		Name:     t.replica,
		Identity: t.identity,
		Relay:    func(ctx context.Context) (net.Conn, error) { return r.Node.Dial(ctx, controlPort+t.index) },
		Proxy: func(ctx context.Context) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", t.proxyAddress)
		},
		OnLost: lost,
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

// prepare creates the namespace and the ServiceAccount that all replicas use, unless they exist.
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

// writeSecret creates a Secret with the given files in the namespace of the pods.
func (o *Options) writeSecret(ctx context.Context, name string, files map[string][]byte) error {
	_, err := o.Admin.CoreV1().Secrets(Namespace).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Data: files,
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating Secret %s/%s: %w", Namespace, name, err)
	}
	return nil
}
