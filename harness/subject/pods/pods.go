// Package pods runs the replicas of a subject as pods on the node of a control
// plane.
//
// They are bare pods: a Deployment cannot deploy the deployment controller, and
// nothing may start a replica again behind a run's back. In each stands, beside
// the subject, a relay as its only way to the API server; see faults/relay. What
// happens to a replica is done and seen on the node itself, so that a run which
// takes the API server down loses sight of nobody.
//
// To read it: launch.go is a life from its beginning to its end, manifest.go what
// the API server is told, way.go how a replica reaches the fault proxy, node.go
// what is run on the node.
package pods

import (
	"context"
	"net"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/process"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

// Namespace is where the pods are, and account who they are there.
const (
	Namespace = "gauntlet-system"
	account   = "subject"
)

// Account is who the subject is to the API server: who to bind its rights to.
func Account() rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: Namespace, Name: account}
}

// Image is a container image that is on the node.
type Image struct {
	Reference string
	// Command is what to run in it; none is its own entrypoint.
	Command []string
}

// Options says how replicas run.
type Options struct {
	Subject  Image // takes kube-controller-manager's flags
	Settings subject.Settings
	Admin    kubernetes.Interface
	Node     Node
	Clock    clock.PassiveClock
}

// RelayOptions is what replicas need beside their [Options] to reach the fault proxy.
type RelayOptions struct {
	Image Image // of gauntlet: `gauntlet relay`
	// Route opens the way to the API server of the replica of that name, and says
	// in the configuration where it begins, on this machine. It is called once for
	// each replica: the way stays when the replica is started again.
	Route func(replica string, config *rest.Config) error
	// Lost is told when a replica that lives cannot be reached for a moment: what
	// it suffers then no scenario asked for. It must be quick.
	Lost func(replica string, err error)
}

// Node is the node that the pods run on, reached without an API server.
type Node interface {
	// Name is the name that it registered under.
	Name() string
	// Exec runs a command on the node and returns what it printed.
	Exec(ctx context.Context, command ...string) (string, error)
	// Follow starts a command on the node whose output is appended to a file of
	// this machine; the process ends when the command does, with its status.
	Follow(ctx context.Context, name, logPath string, command ...string) (*process.Process, error)
	// Dial connects to a port of the node, one of [Ports].
	Dial(ctx context.Context, port int) (net.Conn, error)
	// APIServer is the API server's URL as seen on the node.
	APIServer() string
}
