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

// recoveryTimeout limits how long [Cluster.Resume] and [Cluster.Health] wait until all components
// run again. A restart of the components takes about 2 s on two idle cores.
const recoveryTimeout = time.Minute

// Halt kills kube-apiserver or etcd with SIGKILL; the component stays down until Resume. Halt does
// not kill the clients of the API server, such as kube-scheduler. If a client exits because the API
// server does not respond, Resume restarts that client. Halt returns nil if the component is
// already halted.
func (c *Cluster) Halt(_ context.Context, name cluster.Component) error {
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

// Resume starts a component that Halt has killed, with its previous port and data. It then
// waits until the API server and all its clients are healthy.
//
// If etcd and kube-apiserver are both halted, a call for etcd starts etcd and returns without
// waiting. A call for kube-apiserver first waits until etcd runs, because kube-apiserver exits
// without etcd.
func (c *Cluster) Resume(ctx context.Context, name cluster.Component) error {
	p, err := c.part(name)
	if err != nil {
		return err
	}
	if !c.halted(p.name) {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, recoveryTimeout, fmt.Errorf("the control plane did not recover within %s", recoveryTimeout))
	defer cancel()
	if name == cluster.APIServer { // kube-apiserver would exit if etcd did not run
		err = poll(ctx, "etcd to run", func(context.Context) error {
			if c.halted(string(cluster.Etcd)) {
				return errors.New("etcd is still halted by a fault; kube-apiserver can start only after etcd")
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

// relaunch restarts a component, such as etcd, after its process p has exited. If the cluster has
// been stopped, relaunch returns an error.
func (c *Cluster) relaunch(ctx context.Context, p *part) error {
	c.mu.Lock()
	stopping := c.stopping
	c.mu.Unlock()
	if stopping {
		return fmt.Errorf("starting %s: the cluster has been stopped", p.name)
	}
	return c.launch(ctx, p.component)
}

// recoverClients restarts clients of the API server that have exited because the API server was
// unavailable.
//
// recoverClients does not wait. It returns an error as long as the API server is not ready or a
// component does not run. Callers call recoverClients again until it returns nil.
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
	if c.degraded { // another goroutine has called Halt, or a restarted client has exited again
		return errors.New("a fault has stopped etcd or kube-apiserver, or another component of the control plane has exited")
	}
	return nil
}

// handleExit marks the cluster as failed if the process of p has exited unexpectedly. An exit is
// expected in two cases:
//
//   - Halt has killed the process.
//   - The process is a client of the API server, and the control plane has not yet recovered from a
//     call of Halt; see isDegraded.
func (c *Cluster) handleExit(p *part) {
	c.mu.Lock()
	if c.degraded && p.stopGroup == stopClients {
		p.down = true // the client has exited because the API server is unavailable
	}
	down := p.down
	c.mu.Unlock()
	if !down {
		c.fail(p.Err())
	}
}

// isDegraded reports whether Halt has killed a component and not all components run again yet.
// Health then waits.
func (c *Cluster) isDegraded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.degraded
}

// haltCount returns how often Halt was called. If the number changes, the caller knows that Halt
// was called in the meantime.
func (c *Cluster) haltCount() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.halts
}

// halted reports whether the named component is down because of Halt. Either Halt has killed the
// component, or the component is a client that has exited while the API server was down. halted
// returns false for a component that runs, or that crashed without such a reason.
func (c *Cluster) halted(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.parts, func(p *part) bool { return p.name == name && p.down })
}

// part returns the latest process of kube-apiserver or etcd. For all other components, it returns
// an error, because Halt must not kill them.
func (c *Cluster) part(name cluster.Component) (*part, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.parts, func(p *part) bool { return p.name == string(name) })
	if i < 0 || c.parts[i].stopGroup == stopClients {
		return nil, fmt.Errorf("component %q cannot be halted: expected %s or %s", name, cluster.APIServer, cluster.Etcd)
	}
	return c.parts[i], nil
}
