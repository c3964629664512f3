// Package pods runs the replicas of a subject as pods on the control plane node.
//
// The subject is the program under test, which contains controllers. No controller manages the
// subject's pods: a Deployment cannot deploy the Deployment controller, and only gauntlet may
// restart a replica. Each pod of a run contains a relay, which is the subject's only connection to
// the API server; see faults/relay. Pods of [Deploy] have no relay.
//
// gauntlet stops and pauses replicas with commands on the node. These commands also work while the
// API server is down.
//
// launch.go starts an instance of a replica, and instance.go stops the instance. manifest.go builds
// the pods, tunnel.go connects a replica to the fault proxy, and node.go runs commands on the node.
package pods

import (
	"context"
	"net"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/internal/process"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

const (
	// Namespace is the namespace of the pods that run the program under test.
	Namespace = "gauntlet-system"
	// account is the name of the ServiceAccount of the program under test in [Namespace].
	account = "subject"
)

// Account returns the ServiceAccount of the program under test as a subject of role bindings.
func Account() rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: Namespace, Name: account}
}

// Image is a container image that is already on the node. The kubelet never pulls it.
type Image struct {
	Reference string // name of the container image
	// Command replaces the entrypoint of the image. If Command is empty, the container runs the
	// entrypoint.
	Command []string
}

// Options are the options for running a subject, which is the program under test, as pods.
type Options struct {
	Subject  Image // image of the program under test, which must accept the flags of kube-controller-manager
	Settings subject.Settings
	Admin    kubernetes.Interface // client with all permissions
	Node     Node                 // node that runs the pods
	Clock    clock.PassiveClock   // clock for the validity of certificates
}

// RelayOptions are the options for a relay: a sidecar container between a replica and the fault
// proxy.
type RelayOptions struct {
	Image Image // image of the relay, which runs `gauntlet relay`
	// Route changes config, so that a client connects to the fault proxy instead of the API
	// server. It sets the address and the CA certificate. The fault proxy has one listener for
	// each replica.
	//
	// Route is called once for each replica. After a restart, the replica uses the same
	// listener.
	Route func(replica string, config *rest.Config) error
	// Lost is called if an idle connection to the relay breaks while the program under test is
	// running. No injected fault breaks such a connection, so gauntlet may have missed requests of
	// the replica. Lost must return quickly.
	Lost func(replica string, err error)
}

// Node is the control plane node, which runs the pods. Its methods also work while the API
// server is down.
type Node interface {
	// Name returns the name of the Node object.
	Name() string
	// Exec runs a command on the node and returns its standard output.
	Exec(ctx context.Context, command ...string) (string, error)
	// Follow starts a command on the node and appends the command's output to the local file
	// logPath. The returned process exits when the command exits, with the same exit status. The
	// argument name identifies the process in error messages.
	Follow(ctx context.Context, name, logPath string, command ...string) (*process.Process, error)
	// Dial opens a TCP connection to a port of the node. The port is one of [Ports].
	Dial(ctx context.Context, port int) (net.Conn, error)
	// APIServer returns the URL at which clients on this node connect to the API server.
	APIServer() string
}
