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

// Node is one node of a kind cluster. Its methods use the container engine, so they also work
// without the API server and the kubelet.
type Node struct {
	cluster *Cluster
	name    string // name of the Node object and of the container
}

var _ cluster.NodeAccess = (*Cluster)(nil)

// ControlPlane returns the control plane node.
func (c *Cluster) ControlPlane() cluster.Node { return c.controlPlane() }

// controlPlane returns the control plane node as a *Node, so that this package can call its
// unexported methods.
func (c *Cluster) controlPlane() *Node { return &Node{c, c.nodes[0]} }

// Workers returns the nodes that run the workload's pods. In a cluster with a single node, that
// node is also the control plane node.
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

// Name returns the name of the Node object. The node's container has the same name.
func (n *Node) Name() string { return n.name }

// APIServer returns the API server's URL for clients on the control plane node. The API server's
// certificate is valid for this URL.
func (n *Node) APIServer() string { return "https://127.0.0.1:6443" }

// Exec runs a command on the node for at most one minute and returns its standard output.
func (n *Node) Exec(ctx context.Context, command ...string) (string, error) {
	return n.cluster.engine.run(ctx, engineChangeTimeout, append([]string{"exec", n.name}, command...)...)
}

// Follow starts a command on the node and appends the output of the command to a local file. The
// returned process is a local `docker exec` process. That process exits when the command exits, and
// with the same exit status. If the caller stops the local process, the command on the node
// continues.
func (n *Node) Follow(ctx context.Context, name, logPath string, command ...string) (*process.Process, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return nil, explain(err)
	}
	return process.Start(ctx, process.Spec{
		Name: name, Path: path, Args: append([]string{"exec", n.name}, command...),
		// Variables of the user such as DOCKER_HOST select the container engine.
		Env:     os.Environ(),
		LogPath: logPath,
	})
}

// Dial opens a TCP connection to a port of the node. The port must be in Options.Ports. Dial may
// succeed although no process listens on the port, because the container engine accepts a
// connection before it connects to the port of the node.
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

// address returns the local host:port address that the container engine forwards to a port of the
// node.
func (n *Node) address(ctx context.Context, port int) (string, error) {
	address, err := n.cluster.engine.run(ctx, engineQueryTimeout, "port", n.name, fmt.Sprintf("%d/tcp", port))
	if err != nil {
		return "", fmt.Errorf("finding the address of port %d of node %s: %w", port, n.name, err)
	}
	return address, nil
}

// LoadImage loads all images of a local `docker save` archive into the node's container runtime. If
// ctx is canceled, LoadImage returns an error, but kind continues to load the images.
func (n *Node) LoadImage(ctx context.Context, archive string) error {
	file, err := os.Open(archive)
	if err != nil {
		return fmt.Errorf("opening image archive %s: %w", archive, err)
	}
	loaded := make(chan error, 1)
	go func() { // in a goroutine, because kind's function accepts no context
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

// load loads an image archive into the node's container runtime with a function of kind. If the
// node's container does not exist, load returns errNotFound.
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

// SaveImage copies an image from the container engine to an archive file, with `docker save`.
// SaveImage returns false and no error if the engine does not have the image.
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
