package kind

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/internal/process"
)

// nodeWatch watches the container of a node. Its process is `docker wait`, which exits
// when the container exits.
type nodeWatch struct {
	process *process.Process
	// down means that the node is down on purpose. The exit of its container is then not
	// a failure of the cluster.
	down bool
}

// watchNode makes the cluster fail if the container of a node exits unexpectedly.
func (c *Cluster) watchNode(ctx context.Context, node string) error {
	path, err := exec.LookPath(program)
	if err != nil {
		return explain(err)
	}
	p, err := process.Start(ctx, process.Spec{
		Name: "docker wait " + node, Path: path, Args: []string{"wait", node},
		// The user's environment selects the container engine.
		Env:     os.Environ(),
		LogPath: filepath.Join(c.dir, "wait-"+node+".log"),
	})
	if err != nil {
		return err
	}
	w := &nodeWatch{process: p}
	c.mu.Lock()
	c.watches[node] = w
	c.mu.Unlock()
	go func() {
		<-p.Done()
		c.mu.Lock()
		down, stopping := w.down, c.stopping
		c.mu.Unlock()
		if !down && !stopping {
			c.fail(c.nodeExitError(context.WithoutCancel(ctx), node))
		}
	}()
	return nil
}

// nodeExitError returns an error that describes how the container of a node exited.
func (c *Cluster) nodeExitError(ctx context.Context, node string) error {
	state, err := c.engine.run(ctx, engineQueryTimeout, "inspect", "--format",
		"{{.State.Status}} since {{.State.FinishedAt}}, exit status {{.State.ExitCode}}, out of memory: {{.State.OOMKilled}}", node)
	if err != nil {
		return fmt.Errorf("node %s stopped unexpectedly: %w", node, err)
	}
	return fmt.Errorf("node %s stopped unexpectedly: its container is %s", node, state)
}

// unwatchStopGrace is the time that `docker wait` has to exit after SIGTERM.
const unwatchStopGrace = time.Second

// unwatchAll stops all `docker wait` processes.
func (c *Cluster) unwatchAll(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, w := range c.watches {
		errs = append(errs, w.process.Stop(ctx, unwatchStopGrace))
	}
	return errors.Join(errs...)
}
