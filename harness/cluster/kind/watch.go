package kind

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/process"
)

// watch is a command of the engine that ends when a node's container does.
type watch struct {
	process *process.Process
	// down says that the node is meant to be down, so that its end is none of the
	// cluster's.
	down bool
}

// watchNode has the end of a node's container noticed.
func (c *Cluster) watchNode(ctx context.Context, node string) error {
	path, err := exec.LookPath(program)
	if err != nil {
		return explain(err)
	}
	p, err := process.Start(ctx, process.Spec{
		Name: "the watch over " + node, Path: path, Args: []string{"wait", node},
		// As the user has it: which engine is meant stands there.
		Env:     os.Environ(),
		LogPath: filepath.Join(c.dir, "wait-"+node+".log"),
	})
	if err != nil {
		return err
	}
	w := &watch{process: p}
	c.mu.Lock()
	c.watches[node] = w
	c.mu.Unlock()
	go func() {
		<-p.Done()
		c.mu.Lock()
		down, stopping := w.down, c.stopping
		c.mu.Unlock()
		if !down && !stopping {
			c.fail(c.obituary(context.WithoutCancel(ctx), node))
		}
	}()
	return nil
}

// obituary says how a node's container ended.
func (c *Cluster) obituary(ctx context.Context, node string) error {
	state, err := c.engine.run(ctx, engineAnswerMax, "inspect", "--format",
		"{{.State.Status}} since {{.State.FinishedAt}}, exit status {{.State.ExitCode}}, out of memory: {{.State.OOMKilled}}", node)
	if err != nil {
		return fmt.Errorf("the node %s ended by itself: %w", node, err)
	}
	return fmt.Errorf("the node %s ended by itself: its container is %s", node, state)
}

// unwatchStopGrace is how long the engine's command may take to end when told to.
const unwatchStopGrace = time.Second

func (c *Cluster) unwatchAll(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, w := range c.watches {
		errs = append(errs, w.process.Stop(ctx, unwatchStopGrace))
	}
	return errors.Join(errs...)
}
