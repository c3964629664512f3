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

// The pods use the host network of their node. The relay of replica i listens on
// subjectPort+i for the subject, on loopback only. It listens on controlPort+i for the
// run.
const (
	subjectPort = 10800
	controlPort = 10900
)

// Ports returns the node ports that must be reachable from this machine, for the given
// number of replicas.
func Ports(replicas int) []int {
	var ports []int
	for i := range replicas {
		ports = append(ports, controlPort+i)
	}
	return ports
}

// replicaTunnel is the connection between one replica's pods and the fault proxy. All
// instances of the replica use it.
type replicaTunnel struct {
	replica   string
	index     int
	instances int // number of instances started

	identity     relay.Identity // identity of the run's end of the tunnel
	proxyAddress string         // host:port of the replica's listener at the fault proxy
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

// newTunnel prepares the tunnel of a replica. It creates its listener at the fault
// proxy, the certificates of its relay, and the secrets of its pod.
func (r *relayLauncher) newTunnel(ctx context.Context, replica string) (*replicaTunnel, error) {
	index, err := indexOf(replica)
	if err != nil {
		return nil, err
	}
	config := &rest.Config{}
	if err := r.Route(replica, config); err != nil {
		return nil, fmt.Errorf("setting up the connection to the API server: %w", err)
	}
	proxy, err := url.Parse(config.Host)
	if err != nil {
		return nil, fmt.Errorf("parsing the address of the fault proxy: %w", err)
	}
	pod, run, err := relay.NewPair(replica, r.Clock.Now())
	if err != nil {
		return nil, err
	}
	// The proxy's certificate is valid for loopback addresses, in the pod as well.
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

// kubeconfigOf returns the kubeconfig of a pod, which authenticates with the pod's
// service account token.
func kubeconfigOf(server string, ca []byte) ([]byte, error) {
	return cluster.Kubeconfig(&rest.Config{
		Host: server, BearerTokenFile: tokenDir + "/" + tokenFile, TLSClientConfig: rest.TLSClientConfig{CAData: ca},
	})
}

// connect connects the relay of an instance to the fault proxy. It calls lost when an idle
// connection to the relay breaks.
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

// prepare creates the namespace and the service account of all replicas.
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

func (o *Options) writeSecret(ctx context.Context, name string, files map[string][]byte) error {
	_, err := o.Admin.CoreV1().Secrets(Namespace).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Data: files,
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating Secret %s/%s: %w", Namespace, name, err)
	}
	return nil
}
