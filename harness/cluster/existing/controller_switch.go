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

// The arguments of the program that turns the cluster's own controllers off and on.
const (
	argumentOff = "off"
	argumentOn  = "on"
)

// turnOffTimeout limits the time until the cluster's own controllers are inactive. It
// includes the run time of the program that turns them off.
const turnOffTimeout = 90 * time.Second

// controllerSwitch turns the cluster's own controllers off and on.
type controllerSwitch struct {
	program   string
	env       []string
	unguard   func() // stops the guard process from turning the controllers on
	turnedOn  sync.Once
	turnOnErr error
}

// turnOffControllers ensures that none of the four controllers is active on the cluster.
// If one is active, it calls the program in o.ControllerSwitch or returns an error.
func (c *Cluster) turnOffControllers(ctx context.Context, o Options) error {
	client, err := dynamic.NewForConfig(c.config)
	if err != nil {
		return fmt.Errorf("existing cluster: %w", err)
	}
	active, err := activeControllers(ctx, client)
	if err != nil || len(active) == 0 {
		return err
	}
	if o.ControllerSwitch == "" {
		return fmt.Errorf("existing cluster: %s already active on %s, but the subject must be the only instance; turn them off, or set --controller-switch to a program that turns them off and on",
			strings.Join(active, ", "), c.config.Host)
	}
	if c.controllerSwitch, err = newControllerSwitch(o); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, turnOffTimeout, fmt.Errorf("timed out after %s", turnOffTimeout))
	defer cancel()
	if err := c.controllerSwitch.run(ctx, argumentOff); err != nil {
		return err
	}
	return cluster.Poll(ctx, pollInterval, "the cluster's own controllers to be inactive", func(ctx context.Context) error {
		active, err := activeControllers(ctx, client)
		if err == nil && len(active) > 0 {
			err = fmt.Errorf("`%s %s` succeeded, but still active: %s", o.ControllerSwitch, argumentOff, strings.Join(active, ", "))
		}
		return err
	})
}

// newControllerSwitch returns the switch for o.ControllerSwitch.
// It makes the guard process turn the controllers on again if gauntlet dies.
func newControllerSwitch(o Options) (*controllerSwitch, error) {
	program, err := exec.LookPath(o.ControllerSwitch)
	if err == nil {
		program, err = filepath.Abs(program)
	}
	if err != nil {
		return nil, fmt.Errorf("existing cluster: --controller-switch: expected the path or name of a program: %w", err)
	}
	s := &controllerSwitch{program: program, env: append(os.Environ(), "CONTEXT="+o.Context)}
	if o.Kubeconfig != "" {
		kubeconfig, err := filepath.Abs(o.Kubeconfig)
		if err != nil {
			return nil, fmt.Errorf("existing cluster: %w", err)
		}
		s.env = append(s.env, "KUBECONFIG="+kubeconfig)
	}
	if s.unguard, err = process.GuardCommand([]string{program, argumentOn}, s.env); err != nil {
		return nil, err
	}
	return s, nil
}

// turnOn turns the controllers on again. It does so only once.
func (s *controllerSwitch) turnOn(ctx context.Context) error {
	if s == nil {
		return nil
	}
	s.turnedOn.Do(func() {
		if s.turnOnErr = s.run(ctx, argumentOn); s.turnOnErr == nil {
			s.unguard()
		}
	})
	return s.turnOnErr
}

// run runs the program with an argument. The error contains its output.
func (s *controllerSwitch) run(ctx context.Context, argument string) error {
	cmd := exec.CommandContext(ctx, s.program, argument)
	cmd.Env = s.env
	cmd.WaitDelay = time.Second
	output, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = errors.Join(context.Cause(ctx), err)
	}
	return fmt.Errorf("existing cluster: `%s %s`: %w\n%s", s.program, argument, err, output)
}
