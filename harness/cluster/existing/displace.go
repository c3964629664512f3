package existing

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/process"
)

// The arguments of the program that displaces the cluster's own controllers.
const (
	turnOff = "off"
	turnOn  = "on"
)

// displacedWithin bounds how long they take to be off, the program included.
const displacedWithin = 90 * time.Second

// displacement is the cluster's own controllers, turned off.
type displacement struct {
	program string
	env     []string
	forget  func() // has the guard not turn them on
	undone  sync.Once
	err     error
}

// displace sees that none of the four controllers acts on the cluster, by turning
// them off if it is told how.
func (c *Cluster) displace(ctx context.Context, o Options) error {
	client, err := dynamic.NewForConfig(c.config)
	if err != nil {
		return fmt.Errorf("existing cluster: %w", err)
	}
	found, err := acting(ctx, client)
	if err != nil || len(found) == 0 {
		return err
	}
	if o.ControllerSwitch == "" {
		return fmt.Errorf("existing cluster: somebody runs the %s on %s, which the subject is to take the place of; expected a cluster without, or --displace with a program that turns them off and on",
			strings.Join(found, ", "), c.config.Host)
	}
	if c.displaced, err = newDisplacement(o); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, displacedWithin, fmt.Errorf("not within %s", displacedWithin))
	defer cancel()
	if err := c.displaced.run(ctx, turnOff); err != nil {
		return err
	}
	return cluster.Poll(ctx, pollInterval, "the cluster's own controllers to be off", func(ctx context.Context) error {
		found, err := acting(ctx, client)
		if err == nil && len(found) > 0 {
			err = fmt.Errorf("%s said that they are, and the %s acts", o.ControllerSwitch, strings.Join(found, ", "))
		}
		return err
	})
}

// newDisplacement has the guard turn the controllers on again, should gauntlet
// die.
func newDisplacement(o Options) (*displacement, error) {
	program, err := exec.LookPath(o.ControllerSwitch)
	if err == nil {
		program, err = filepath.Abs(program)
	}
	if err != nil {
		return nil, fmt.Errorf("existing cluster: --displace: expected a program: %w", err)
	}
	d := &displacement{program: program, env: append(os.Environ(), "CONTEXT="+o.Context)}
	if o.Kubeconfig != "" {
		kubeconfig, err := filepath.Abs(o.Kubeconfig)
		if err != nil {
			return nil, fmt.Errorf("existing cluster: %w", err)
		}
		d.env = append(d.env, "KUBECONFIG="+kubeconfig)
	}
	if d.forget, err = process.GuardCommand([]string{program, turnOn}, d.env); err != nil {
		return nil, err
	}
	return d, nil
}

// undo turns the controllers on again.
func (d *displacement) undo(ctx context.Context) error {
	if d == nil {
		return nil
	}
	d.undone.Do(func() {
		if d.err = d.run(ctx, turnOn); d.err == nil {
			d.forget()
		}
	})
	return d.err
}

func (d *displacement) run(ctx context.Context, argument string) error {
	cmd := exec.CommandContext(ctx, d.program, argument)
	cmd.Env = d.env
	cmd.WaitDelay = time.Second
	output, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = errors.Join(context.Cause(ctx), err)
	}
	return fmt.Errorf("existing cluster: `%s %s`: %w\n%s", d.program, argument, err, output)
}
