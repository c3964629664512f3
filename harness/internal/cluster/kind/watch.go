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

// nodeWatch runs `docker wait` for the container of a node. gauntlet thereby notices when the
// container exits.
type nodeWatch struct {
	process *process.Process // `docker wait`, which exits when the container exits
	// down means that KillNode has killed the container. The exit is then not a failure of the
	// cluster.
	down bool
}

// watchNode starts `docker wait` for the container of a node. If the container exits unexpectedly,
// the channel that [Cluster.Failed] returns is closed.
func (c *Cluster) watchNode(ctx context.Context, node string) error {
	path, err := exec.LookPath(program)
	if err != nil {
		return explain(err)
	}
	p, err := process.Start(ctx, process.Spec{
		Name: "docker wait " + node, Path: path, Args: []string{"wait", node},
		// Environment variables such as DOCKER_HOST select the container engine.
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

// nodeExitError returns the error for a node whose container has exited unexpectedly. The error
// contains the exit status, the time of the exit, and whether the container ran out of memory.
func (c *Cluster) nodeExitError(ctx context.Context, node string) error {
	state, err := c.engine.run(ctx, engineQueryTimeout, "inspect", "--format",
		"{{.State.Status}} since {{.State.FinishedAt}}, exit status {{.State.ExitCode}}, out of memory: {{.State.OOMKilled}}", node)
	if err != nil {
		return fmt.Errorf("node %s stopped unexpectedly: %w", node, err)
	}
	return fmt.Errorf("node %s stopped unexpectedly: its container is %s", node, state)
}

// unwatchStopGrace is the time between SIGTERM and SIGKILL for a `docker wait` process.
const unwatchStopGrace = time.Second

// unwatchAll stops the `docker wait` processes of all nodes. [Cluster.Stop] calls it.
func (c *Cluster) unwatchAll(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, w := range c.watches {
		errs = append(errs, w.process.Stop(ctx, unwatchStopGrace))
	}
	return errors.Join(errs...)
}
