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

// The pods share their node's network. The relay of the i-th replica listens for
// its subject on subjectPort+i, on loopback alone, and for the test process on
// controlPort+i.
const (
	subjectPort = 10800
	controlPort = 10900
)

// Ports are the ports of the node that must be reachable from here for a number
// of replicas.
func Ports(replicas int) []int {
	var ports []int
	for i := range replicas {
		ports = append(ports, controlPort+i)
	}
	return ports
}

// replicaTunnel is how one replica reaches the API server, in all of its lives.
type replicaTunnel struct {
	replica   string
	index     int
	instances int // begun so far

	identity     relay.Identity // of the test process's end
	proxyAddress string         // host:port of the fault proxy, on this machine
}

// indexOf is the number in a replica's name.
func indexOf(replica string) (int, error) {
	_, number, _ := strings.Cut(replica, "-")
	index, err := strconv.Atoi(number)
	if err != nil || index < 0 {
		return 0, fmt.Errorf("replica %q: expected a name such as subject-0", replica)
	}
	return index, nil
}

// newTunnel makes the way of a replica: its gate in the fault proxy, the certificates
// of its relay, and the secret that tells its pod.
func (r *relayLauncher) newTunnel(ctx context.Context, replica string) (*replicaTunnel, error) {
	index, err := indexOf(replica)
	if err != nil {
		return nil, err
	}
	config := &rest.Config{}
	if err := r.Route(replica, config); err != nil {
		return nil, fmt.Errorf("opening a way to the API server: %w", err)
	}
	proxy, err := url.Parse(config.Host)
	if err != nil {
		return nil, fmt.Errorf("the way to the API server: %w", err)
	}
	pod, run, err := relay.NewPair(replica, r.Clock.Now())
	if err != nil {
		return nil, err
	}
	// The certificate of the proxy is for loopback, wherever that is.
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

// kubeconfigOf is the kubeconfig of a pod: its credential is its own token.
func kubeconfigOf(server string, ca []byte) ([]byte, error) {
	return cluster.Kubeconfig(&rest.Config{
		Host: server, BearerTokenFile: tokenDir + "/" + tokenFile, TLSClientConfig: rest.TLSClientConfig{CAData: ca},
	})
}

// connect joins the relay of a life to the fault proxy. Lost is told when a
// connection that waited there broke.
func (r *relayLauncher) connect(ctx context.Context, w *replicaTunnel, lost func(error)) (*relay.Tunnel, error) {
	line, err := relay.Connect(ctx, relay.TunnelOptions{
		Name:     w.replica,
		Identity: w.identity,
		Relay:    func(ctx context.Context) (net.Conn, error) { return r.Node.Dial(ctx, controlPort+w.index) },
		Proxy: func(ctx context.Context) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", w.proxyAddress)
		},
		OnLost: lost,
	})
	if err != nil {
		return nil, err
	}
	if err := line.WaitReady(ctx); err != nil {
		line.Close()
		return nil, err
	}
	return line, nil
}

// prepare makes what all replicas need.
func (o *Options) prepare(ctx context.Context) error {
	_, err := o.Admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating the namespace %s: %w", Namespace, err)
	}
	off := false
	_, err = o.Admin.CoreV1().ServiceAccounts(Namespace).Create(ctx, &corev1.ServiceAccount{
		ObjectMeta:                   metav1.ObjectMeta{Name: account},
		AutomountServiceAccountToken: &off,
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating the service account %s/%s: %w", Namespace, account, err)
	}
	return nil
}

func (o *Options) writeSecret(ctx context.Context, name string, files map[string][]byte) error {
	_, err := o.Admin.CoreV1().Secrets(Namespace).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Data: files,
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating the secret %s/%s: %w", Namespace, name, err)
	}
	return nil
}
