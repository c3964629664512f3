// Package pods runs the replicas of a subject as pods on the control-plane node.
//
// The pods have no controller: a Deployment cannot deploy the Deployment controller,
// and only the run may restart a replica. Each pod contains a relay, which is the
// subject's only connection to the API server; see faults/relay. The run acts on
// replicas through the node itself, so it also works while the API server is down.
//
// The files: launch.go starts an instance and instance.go ends it; manifest.go builds
// the pods; tunnel.go connects a replica to the fault proxy; node.go runs commands on
// the node.
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

// Namespace is the namespace of the pods. account is their service account.
const (
	Namespace = "gauntlet-system"
	account   = "subject"
)

// Account returns the service account of the subject, for role bindings.
func Account() rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: Namespace, Name: account}
}

// Image is a container image on the node.
type Image struct {
	Reference string
	// Command replaces the image's entrypoint, if it is set.
	Command []string
}

// Options contains the options for replicas that run as pods.
type Options struct {
	Subject  Image // must accept kube-controller-manager's flags
	Settings subject.Settings
	Admin    kubernetes.Interface
	Node     Node
	Clock    clock.PassiveClock
}

// RelayOptions are the additional options of replicas that connect through relays.
type RelayOptions struct {
	Image Image // runs `gauntlet relay`
	// Route writes the address of the replica's listener at the fault proxy to config.
	// It is called once for each replica; restarts use the same address.
	Route func(replica string, config *rest.Config) error
	// Lost is called when an idle connection to the relay breaks while the subject's
	// process is running. No fault of a scenario breaks such a connection. Lost must return
	// quickly.
	Lost func(replica string, err error)
}

// Node is the node that runs the pods. Its methods do not use the API server.
type Node interface {
	// Name returns the name of the Node object.
	Name() string
	// Exec runs a command on the node and returns its output.
	Exec(ctx context.Context, command ...string) (string, error)
	// Follow starts a command on the node and appends its output to a local file. The
	// returned process ends with the command and has its exit status.
	Follow(ctx context.Context, name, logPath string, command ...string) (*process.Process, error)
	// Dial connects to a port of the node, one of [Ports].
	Dial(ctx context.Context, port int) (net.Conn, error)
	// APIServer returns the URL of the API server for clients on the node.
	APIServer() string
}
