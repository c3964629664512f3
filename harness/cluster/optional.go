package cluster

import (
	"context"
	"net"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/kube-gauntlet/gauntlet/harness/internal/process"
)

// The optional interfaces of a cluster that need no file of their own are in this file. A
// capability says whether the clusters of a provider implement them.

// Shared is a cluster that exists before the run and has other users. The run uses one
// namespace, which it removes at its end.
type Shared interface {
	// Namespace returns the namespace of the run, which exists. It also contains the lease
	// of the subject.
	Namespace() string
	// SubjectAccount returns the user or service account of the [Subject] role, for role
	// bindings.
	SubjectAccount() rbacv1.Subject
}

// Detached is a cluster that needs no process of gauntlet and may outlive it.
type Detached interface {
	// ID returns the name of this cluster, which `gauntlet down` accepts.
	ID() string
	// Kubeconfig returns the path of the kubeconfig of the [Admin] role. Stop removes the
	// file.
	Kubeconfig() string
}

// LogExporter is a cluster that can write all its logs to a directory.
type LogExporter interface {
	// ExportLogs writes the logs. It returns early if ctx is canceled.
	ExportLogs(ctx context.Context, dir string) error
}

// NodeAccess is a cluster whose nodes run commands and images of the harness.
type NodeAccess interface {
	// ControlPlane returns the control plane node.
	ControlPlane() Node
	// Workers returns the nodes that run the pods of a workload. In a cluster with a single
	// node, this is the control plane node.
	Workers() []Node
	// SaveImage writes an image of this machine to an archive for [Node.LoadImage]. It
	// returns false and no error if this machine does not have the image.
	SaveImage(ctx context.Context, reference, archive string) (bool, error)
	// ControllerManagerImage returns the name of the image of the cluster's own
	// kube-controller-manager. The image has no entrypoint.
	ControllerManagerImage(ctx context.Context) (string, error)
}

// Node is a node of a cluster. Its methods do not use the API server or the kubelet.
type Node interface {
	// Name returns the name of the Node object.
	Name() string
	// APIServer returns the URL of the API server for clients on the node.
	APIServer() string
	// Exec runs a command on the node and returns its standard output.
	Exec(ctx context.Context, command ...string) (string, error)
	// Follow starts a command on the node and appends its output to a file of this machine.
	// The returned process ends with the command and has its exit status.
	Follow(ctx context.Context, name, logPath string, command ...string) (*process.Process, error)
	// Dial connects to a port of the node. The options of the cluster list the ports.
	Dial(ctx context.Context, port int) (net.Conn, error)
	// LoadImage loads the images of a `docker save` archive into the container runtime.
	LoadImage(ctx context.Context, archive string) error
}
