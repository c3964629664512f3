package embedded

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

var _ cluster.Restartable = (*Cluster)(nil)

// mendWithin bounds how long everything may take to be at work again once it has
// been started; it takes 2 s on two idle cores.
const mendWithin = time.Minute

// Halt kills a part, until it is resumed. Those that only talk to the API server
// stay, and if one does not survive it, it is started again with the API server.
func (c *Cluster) Halt(_ context.Context, name cluster.Part) error {
	p, err := c.part(name)
	if err != nil {
		return err
	}
	c.mu.Lock()
	halted, stopping := p.down, c.stopping
	p.down, c.broken = true, true
	c.halts++
	c.mu.Unlock()
	switch {
	case stopping:
		return fmt.Errorf("halting %s: the cluster has been stopped", name)
	case halted:
		return nil
	}
	if err := p.Kill(); err != nil {
		return fmt.Errorf("halting %s: %w", name, err)
	}
	return nil
}

// Resume starts a part that was halted, at its old port and with its old data. It
// waits until the API server serves again, and everything that talks to it; when
// that is halted too, it leaves the waiting to whoever resumes it.
func (c *Cluster) Resume(ctx context.Context, name cluster.Part) error {
	p, err := c.part(name)
	if err != nil {
		return err
	}
	if !c.halted(p.name) {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, mendWithin, fmt.Errorf("not within %s", mendWithin))
	defer cancel()
	if name == cluster.APIServer { // which gives up on an etcd that is not there
		err = poll(ctx, "etcd", func(context.Context) error {
			if c.halted(string(cluster.Etcd)) {
				return errors.New("it is halted")
			}
			return nil
		})
	}
	if err == nil {
		err = c.relaunch(ctx, p)
	}
	if err == nil && !c.halted(string(cluster.APIServer)) {
		err = poll(ctx, "the control plane to be whole again", c.mend)
		if err == nil {
			err = c.remind(ctx)
		}
	}
	if err != nil {
		return fmt.Errorf("resuming %s: %w", name, err)
	}
	return nil
}

// relaunch starts a part anew that is down.
func (c *Cluster) relaunch(ctx context.Context, p *part) error {
	c.mu.Lock()
	stopping := c.stopping
	c.mu.Unlock()
	if stopping {
		return errors.New("the cluster has been stopped")
	}
	return c.launch(ctx, p.component)
}

// mend starts the clients that ended while there was no API server to talk to,
// once there is one, and is nil when every part is at work.
func (c *Cluster) mend(ctx context.Context) error {
	c.mending.Lock()
	defer c.mending.Unlock()
	if err := c.Err(); err != nil {
		return err
	}
	server, err := c.part(cluster.APIServer)
	if err != nil {
		return err
	}
	if err := c.probes.probe(ctx, server.healthURL); err != nil {
		return unhealthy(server, err)
	}
	c.mu.Lock()
	parts := slices.Clone(c.parts)
	c.mu.Unlock()
	for _, p := range parts {
		if p.stopWave != waveClients || !c.halted(p.name) {
			continue
		}
		if err := c.relaunch(ctx, p); err != nil {
			return err
		}
	}
	if err := c.look(ctx); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken = slices.ContainsFunc(c.parts, func(p *part) bool { return p.down })
	if c.broken { // somebody has halted one meanwhile, or it has just ended
		return errors.New("a part is down")
	}
	return nil
}

// ended takes in the end of a part's process.
func (c *Cluster) ended(p *part) {
	c.mu.Lock()
	if c.broken && p.stopWave == waveClients {
		p.down = true // what ends while there is nobody to talk to ends because of that
	}
	down := p.down
	c.mu.Unlock()
	if !down {
		c.fail(p.Err())
	}
}

// whole reports whether nothing is out of order because of what was halted.
func (c *Cluster) whole() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.broken
}

func (c *Cluster) haltsSoFar() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.halts
}

// halted reports whether a part is down.
func (c *Cluster) halted(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.parts, func(p *part) bool { return p.name == name && p.down })
}

func (c *Cluster) part(name cluster.Part) (*part, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.parts, func(p *part) bool { return p.name == string(name) })
	if i < 0 || c.parts[i].stopWave == waveClients {
		return nil, fmt.Errorf("no part %q that can be halted: expected %s or %s", name, cluster.APIServer, cluster.Etcd)
	}
	return c.parts[i], nil
}
