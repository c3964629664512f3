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

// recoveryTimeout limits the time from a restart until all components run again.
// Without other load, two cores need 2 s for this.
const recoveryTimeout = time.Minute

// Halt kills a component, which stays down until Resume. Halt does not stop the
// clients of the API server. If a client exits because the API server is missing,
// Resume restarts that client.
func (c *Cluster) Halt(_ context.Context, name cluster.Part) error {
	p, err := c.part(name)
	if err != nil {
		return err
	}
	c.mu.Lock()
	halted, stopping := p.down, c.stopping
	p.down, c.degraded = true, true
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

// Resume starts a halted component with its previous port and data. It waits until the
// API server and all its clients work again. If the API server itself is halted,
// Resume of another component does not wait, because Resume of the API server does.
func (c *Cluster) Resume(ctx context.Context, name cluster.Part) error {
	p, err := c.part(name)
	if err != nil {
		return err
	}
	if !c.halted(p.name) {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, recoveryTimeout, fmt.Errorf("timed out after %s", recoveryTimeout))
	defer cancel()
	if name == cluster.APIServer { // exits if etcd does not run
		err = poll(ctx, "etcd to run", func(context.Context) error {
			if c.halted(string(cluster.Etcd)) {
				return errors.New("etcd is halted")
			}
			return nil
		})
	}
	if err == nil {
		err = c.relaunch(ctx, p)
	}
	if err == nil && !c.halted(string(cluster.APIServer)) {
		err = poll(ctx, "all components of the control plane to run again", c.recoverClients)
		if err == nil {
			err = c.retriggerKWOK(ctx)
		}
	}
	if err != nil {
		return fmt.Errorf("resuming %s: %w", name, err)
	}
	return nil
}

// relaunch starts the program of a part whose process is down.
func (c *Cluster) relaunch(ctx context.Context, p *part) error {
	c.mu.Lock()
	stopping := c.stopping
	c.mu.Unlock()
	if stopping {
		return errors.New("the cluster has been stopped")
	}
	return c.launch(ctx, p.component)
}

// recoverClients restarts the clients that exited while the API server was
// unavailable. It returns nil when all components run, and an error while the API
// server is not ready, so that the caller can poll it.
func (c *Cluster) recoverClients(ctx context.Context) error {
	c.recovering.Lock()
	defer c.recovering.Unlock()
	if err := c.Err(); err != nil {
		return err
	}
	server, err := c.part(cluster.APIServer)
	if err != nil {
		return err
	}
	if err := c.prober.probe(ctx, server.healthURL); err != nil {
		return unhealthy(server, err)
	}
	c.mu.Lock()
	parts := slices.Clone(c.parts)
	c.mu.Unlock()
	for _, p := range parts {
		if p.stopGroup != stopClients || !c.halted(p.name) {
			continue
		}
		if err := c.relaunch(ctx, p); err != nil {
			return err
		}
	}
	if err := c.checkHealth(ctx); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.degraded = slices.ContainsFunc(c.parts, func(p *part) bool { return p.down })
	if c.degraded { // a component was halted or exited during this call
		return errors.New("a component does not run")
	}
	return nil
}

// handleExit handles the exit of the process of a part.
// It is a failure of the cluster unless it is the expected result of Halt.
func (c *Cluster) handleExit(p *part) {
	c.mu.Lock()
	if c.degraded && p.stopGroup == stopClients {
		p.down = true // the client exited because the API server is unavailable
	}
	down := p.down
	c.mu.Unlock()
	if !down {
		c.fail(p.Err())
	}
}

// isDegraded reports whether a component is halted or restarting.
func (c *Cluster) isDegraded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.degraded
}

// haltCount returns the number of calls of Halt so far. A caller compares two values
// to find out whether a component was halted in between.
func (c *Cluster) haltCount() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.halts
}

// halted reports whether the component with this name is down.
func (c *Cluster) halted(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.parts, func(p *part) bool { return p.name == name && p.down })
}

// part returns the part with this name, if a fault may halt it.
func (c *Cluster) part(name cluster.Part) (*part, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.parts, func(p *part) bool { return p.name == string(name) })
	if i < 0 || c.parts[i].stopGroup == stopClients {
		return nil, fmt.Errorf("component %q cannot be halted: expected %s or %s", name, cluster.APIServer, cluster.Etcd)
	}
	return c.parts[i], nil
}
