package cluster

import (
	"context"
	"net"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/kube-gauntlet/gauntlet/harness/internal/process"
)

// A cluster may implement the interfaces in this file in addition to [Cluster]. The capabilities of
// a provider say which ones its clusters implement; see [Capability].

// Shared is a cluster that exists before the run and that other people may use. The run creates all
// its namespaced objects in one namespace. It deletes this namespace when it ends.
type Shared interface {
	// Namespace returns the name of the namespace of the run. The namespace already exists. It also
	// contains the leader-election Lease of the subject.
	Namespace() string
	// SubjectAccount returns the user or ServiceAccount that the subject authenticates as. The
	// harness grants this account the permissions of the subject.
	SubjectAccount() rbacv1.Subject
}

// Detached is a cluster that can keep running after the gauntlet process that started it has
// exited.
type Detached interface {
	// ID returns the name of this cluster, which is an argument of `gauntlet down`.
	ID() string
	// Kubeconfig returns the path of the kubeconfig file of the [Admin] role. [Cluster.Stop]
	// removes the file.
	Kubeconfig() string
}

// LogExporter is a cluster that can write the logs of its nodes and components to a directory.
type LogExporter interface {
	// ExportLogs writes the logs to dir. If ctx is canceled, it returns an error before all logs
	// are written.
	ExportLogs(ctx context.Context, dir string) error
}

// NodeAccess is a cluster on whose nodes the harness can run commands and load container images.
type NodeAccess interface {
	// ControlPlane returns the control plane node.
	ControlPlane() Node
	// Workers returns the nodes that run the pods of a workload. In a cluster with a single
	// node, this is the control plane node.
	Workers() []Node
	// SaveImage writes an image of the local container engine to an archive file, which
	// [Node.LoadImage] reads. It returns false and no error if the engine does not have the image.
	SaveImage(ctx context.Context, reference, archive string) (bool, error)
	// ControllerManagerImage returns the name of the container image that the cluster uses for its
	// own kube-controller-manager. The image has no entrypoint, so a container must set its
	// command.
	ControllerManagerImage(ctx context.Context) (string, error)
}

// Node is a node of a cluster. Its methods also work while the API server and the kubelet are
// stopped.
type Node interface {
	// Name returns the name of the Node object.
	Name() string
	// APIServer returns the URL at which clients on this node connect to the API server.
	APIServer() string
	// Exec runs a command on the node and returns its standard output.
	Exec(ctx context.Context, command ...string) (string, error)
	// Follow starts a command on the node and appends the output of the command to the local file
	// logPath. The returned process exits when the command exits, and with the same exit status.
	// The name identifies the process in error messages.
	Follow(ctx context.Context, name, logPath string, command ...string) (*process.Process, error)
	// Dial opens a TCP connection to a port of the node. The port must be one that the cluster was
	// started with, such as one of kind.Options.Ports.
	Dial(ctx context.Context, port int) (net.Conn, error)
	// LoadImage loads all images of a `docker save` archive into the container runtime of the node.
	// The archive is a local file.
	LoadImage(ctx context.Context, archive string) error
}
