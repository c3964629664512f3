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

	"github.com/kube-gauntlet/gauntlet/harness/process"
)

// Node is a node of a cluster, reached as a container of the engine: what is done
// to it so needs no API server and no kubelet.
type Node struct {
	cluster *Cluster
	name    string
}

// ControlPlane is the node of the control plane.
func (c *Cluster) ControlPlane() *Node { return &Node{c, c.nodes[0]} }

// Workers are the nodes that take pods of a workload: the control plane's when it is
// alone.
func (c *Cluster) Workers() []*Node {
	names := c.nodes[1:]
	if len(names) == 0 {
		names = c.nodes
	}
	var workers []*Node
	for _, name := range names {
		workers = append(workers, &Node{c, name})
	}
	return workers
}

// Name is the node's.
func (n *Node) Name() string { return n.name }

// APIServer is where the API server is reached from the control plane's own node,
// as a URL. Its certificate is good for it.
func (n *Node) APIServer() string { return "https://127.0.0.1:6443" }

// Exec runs a command on the node, for no longer than a minute, and returns what
// it printed.
func (n *Node) Exec(ctx context.Context, command ...string) (string, error) {
	return n.cluster.engine.run(ctx, engineWorkMax, append([]string{"exec", n.name}, command...)...)
}

// Follow starts a command on the node whose output goes to a file of this
// machine, behind what is there. The process that it returns stands for the
// command: it ends when the command does, with its exit status. To end it first
// leaves the command running.
func (n *Node) Follow(ctx context.Context, name, logPath string, command ...string) (*process.Process, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return nil, explain(err)
	}
	return process.Start(ctx, process.Spec{
		Name: name, Path: path, Args: append([]string{"exec", n.name}, command...),
		// As the user has it: which engine is meant stands there.
		Env:     os.Environ(),
		LogPath: logPath,
	})
}

// Dial connects to a port of the node, one of the Ports that the cluster was
// started with. That it connects does not mean that anybody listens: the engine
// may be asking only then.
func (n *Node) Dial(ctx context.Context, port int) (net.Conn, error) {
	address, err := n.address(ctx, port)
	if err != nil {
		return nil, err
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("connecting to port %d of %s: %w", port, n.name, err)
	}
	return conn, nil
}

// address is where a port of the node is reached from this machine.
func (n *Node) address(ctx context.Context, port int) (string, error) {
	address, err := n.cluster.engine.run(ctx, engineAnswerMax, "port", n.name, fmt.Sprintf("%d/tcp", port))
	if err != nil {
		return "", fmt.Errorf("asking where port %d of %s is: %w", port, n.name, err)
	}
	return address, nil
}

// LoadImage puts the images of an archive, as `docker save` writes it, onto the
// node.
func (n *Node) LoadImage(ctx context.Context, archive string) error {
	file, err := os.Open(archive)
	if err != nil {
		return fmt.Errorf("loading an image: %w", err)
	}
	loaded := make(chan error, 1)
	go func() { // kind knows no context
		defer file.Close()
		loaded <- n.load(file)
	}()
	select {
	case err := <-loaded:
		if err != nil {
			return fmt.Errorf("loading the image %s onto %s: %w", archive, n.name, explain(err))
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("loading the image %s onto %s: %w", archive, n.name, context.Cause(ctx))
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
	return errNotAnyMore
}

// SaveImage writes an image that the engine has to an archive, and reports
// whether it has it.
func SaveImage(ctx context.Context, reference, archive string) (bool, error) {
	var e engine
	switch err := e.hasImage(ctx, reference); {
	case errors.Is(err, errNoImage):
		return false, nil
	case err != nil:
		return false, err
	}
	if _, err := e.run(ctx, engineWorkMax, "save", "--output", archive, reference); err != nil {
		return false, fmt.Errorf("saving the image %s: %w", reference, err)
	}
	return true, nil
}
