package cluster

import (
	"context"
	"net"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/kube-gauntlet/gauntlet/harness/internal/process"
)

// A cluster may implement the interfaces in this file in addition to [Cluster]. Its capabilities
// say which of these interfaces it implements; see [Capability].

// Shared is a cluster that exists before the test run and that other people may use. The run
// creates all its namespaced objects in one namespace. When the run ends, it deletes this
// namespace.
type Shared interface {
	// Namespace returns the name of the test run's namespace, which already exists. It also
	// contains the tested program's leader-election Lease.
	Namespace() string
	// SubjectAccount returns the user or ServiceAccount as which the program under test
	// authenticates. The test harness grants this account the permissions that the program needs.
	SubjectAccount() rbacv1.Subject
}

// Detached is a cluster that can keep running after the gauntlet process that started it has
// exited.
type Detached interface {
	// ID returns the name with which `gauntlet down NAME` stops this cluster.
	ID() string
	// Kubeconfig returns the path of a kubeconfig file with the credentials of the [Admin] role.
	// [Cluster.Stop] removes the file.
	Kubeconfig() string
}

// LogExporter is a cluster that can write the logs of its nodes and components to a directory.
type LogExporter interface {
	// ExportLogs writes the logs to files in dir. If ctx is canceled, ExportLogs returns an error,
	// and some logs may be missing.
	ExportLogs(ctx context.Context, dir string) error
}

// NodeAccess is a cluster on whose nodes the test harness can run commands and load container
// images.
type NodeAccess interface {
	// ControlPlane returns the control plane node.
	ControlPlane() Node
	// Workers returns the nodes that run the workload's pods. In a cluster with a single node, that
	// node is also the control plane node.
	Workers() []Node
	// SaveImage copies an image from the local container engine to an archive file.
	// [Node.LoadImage] reads such files. SaveImage returns false and no error if the engine does
	// not have the image.
	SaveImage(ctx context.Context, reference, archive string) (bool, error)
	// ControllerManagerImage returns the name of the image in which the cluster's own
	// kube-controller-manager runs. The image has no entrypoint, so the container's spec must
	// contain a command.
	ControllerManagerImage(ctx context.Context) (string, error)
}

// Node is one node of a cluster. Its methods also work while the API server and the node's kubelet
// are stopped.
type Node interface {
	// Name returns the name of the Node object.
	Name() string
	// APIServer returns the URL at which clients on this node connect to the API server.
	APIServer() string
	// Exec runs a command on the node and returns its standard output.
	Exec(ctx context.Context, command ...string) (string, error)
	// Follow starts a command on the node and appends the output of the command to the local file
	// logPath. The returned local process exits when the command exits, and with the same exit
	// status. Error messages identify the process by name.
	Follow(ctx context.Context, name, logPath string, command ...string) (*process.Process, error)
	// Dial opens a TCP connection from this machine to a port of the node. The port must be in the
	// options with which the cluster was started, such as kind.Options.Ports.
	Dial(ctx context.Context, port int) (net.Conn, error)
	// LoadImage loads all images of a local `docker save` archive into the node's container
	// runtime.
	LoadImage(ctx context.Context, archive string) error
}
