package kind

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"

	kindcluster "sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/cluster/nodeutils"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/internal/process"
)

// Node is a node of a cluster. Its methods use the container engine, not the API server or the kubelet.
type Node struct {
	cluster *Cluster
	name    string
}

var _ cluster.NodeAccess = (*Cluster)(nil)

// ControlPlane returns the control plane node.
func (c *Cluster) ControlPlane() cluster.Node { return c.controlPlane() }

func (c *Cluster) controlPlane() *Node { return &Node{c, c.nodes[0]} }

// Workers returns the nodes that run the pods of a workload.
// In a cluster with a single node, this is the control plane node.
func (c *Cluster) Workers() []cluster.Node {
	names := c.nodes[1:]
	if len(names) == 0 {
		names = c.nodes
	}
	var workers []cluster.Node
	for _, name := range names {
		workers = append(workers, &Node{c, name})
	}
	return workers
}

// Name returns the name of the node.
func (n *Node) Name() string { return n.name }

// APIServer returns the URL at which clients on the control plane node reach the API
// server. The certificate of the API server is valid for this address.
func (n *Node) APIServer() string { return "https://127.0.0.1:6443" }

// Exec runs a command on the node for at most one minute and returns its standard output.
func (n *Node) Exec(ctx context.Context, command ...string) (string, error) {
	return n.cluster.engine.run(ctx, engineChangeTimeout, append([]string{"exec", n.name}, command...)...)
}

// Follow starts a command on the node and appends its output to a file on this machine.
// The returned process is the client of the container engine. It exits together with the
// command and with the same exit status. Stopping it does not stop the command.
func (n *Node) Follow(ctx context.Context, name, logPath string, command ...string) (*process.Process, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return nil, explain(err)
	}
	return process.Start(ctx, process.Spec{
		Name: name, Path: path, Args: append([]string{"exec", n.name}, command...),
		// The user's environment selects the container engine.
		Env:     os.Environ(),
		LogPath: logPath,
	})
}

// Dial connects to a port of the node, which must be one of Options.Ports.
// It may succeed although nothing listens on the port, because the container engine
// accepts the connection before it forwards it.
func (n *Node) Dial(ctx context.Context, port int) (net.Conn, error) {
	address, err := n.address(ctx, port)
	if err != nil {
		return nil, err
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("connecting to port %d of node %s: %w", port, n.name, err)
	}
	return conn, nil
}

// address returns the address on this machine that is forwarded to a port of the node.
func (n *Node) address(ctx context.Context, port int) (string, error) {
	address, err := n.cluster.engine.run(ctx, engineQueryTimeout, "port", n.name, fmt.Sprintf("%d/tcp", port))
	if err != nil {
		return "", fmt.Errorf("finding the address of port %d of node %s: %w", port, n.name, err)
	}
	return address, nil
}

// LoadImage loads the images of a `docker save` archive into the container runtime of the node.
func (n *Node) LoadImage(ctx context.Context, archive string) error {
	file, err := os.Open(archive)
	if err != nil {
		return fmt.Errorf("loading an image: %w", err)
	}
	loaded := make(chan error, 1)
	go func() { // the function of kind accepts no context
		defer file.Close()
		loaded <- n.load(file)
	}()
	select {
	case err := <-loaded:
		if err != nil {
			return fmt.Errorf("loading image archive %s onto node %s: %w", archive, n.name, explain(err))
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("loading image archive %s onto node %s: %w", archive, n.name, context.Cause(ctx))
	}
}

func (n *Node) load(archive *os.File) error {
	nodes, err := kindcluster.NewProvider(kindcluster.ProviderWithDocker()).ListNodes(n.cluster.name)
	if err != nil {
		return err
	}
	for _, node := range nodes {
		if node.String() == n.name {
			return nodeutils.LoadImageArchive(node, archive)
		}
	}
	return errNotFound
}

// SaveImage writes an image of the container engine to an archive.
// It returns false and no error if the engine does not have the image.
func (c *Cluster) SaveImage(ctx context.Context, reference, archive string) (bool, error) {
	e := c.engine
	switch err := e.hasImage(ctx, reference); {
	case errors.Is(err, errNoImage):
		return false, nil
	case err != nil:
		return false, err
	}
	if _, err := e.run(ctx, engineChangeTimeout, "save", "--output", archive, reference); err != nil {
		return false, fmt.Errorf("saving image %s: %w", reference, err)
	}
	return true, nil
}
