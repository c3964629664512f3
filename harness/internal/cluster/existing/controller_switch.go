package existing

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/internal/process"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// The arguments with which gauntlet calls the program of the flag --controller-switch. "off"
// turns off the cluster's own controllers before a run, and "on" turns them on after it.
const (
	argumentOff = "off"
	argumentOn  = "on"
)

// turnOffTimeout is how long the controllers under test may remain active on the cluster. It
// starts when gauntlet calls the user's program to turn them off.
const turnOffTimeout = 90 * time.Second

// controllerSwitch turns the cluster's own controllers off and on with the program of the user.
type controllerSwitch struct {
	program   string    // absolute path
	env       []string  // environment of the program
	unguard   func()    // tells the guard process not to turn the controllers on if gauntlet dies
	turnedOn  sync.Once // calls the program with argumentOn
	turnOnErr error     // result of that call
}

// turnOffControllers ensures that none of the controllers under test is active on the cluster.
//
// If one of them is active, it calls the program in o.ControllerSwitch. If there is no such
// program, it returns an error. It also returns an error if a default controller that is not
// under test is inactive.
func (c *Cluster) turnOffControllers(ctx context.Context, o Options) error {
	client, err := dynamic.NewForConfig(c.config)
	if err != nil {
		return fmt.Errorf("existing cluster: %w", err)
	}
	state, err := readControllers(ctx, client, o.Controllers)
	if err != nil || len(state.active) == 0 {
		return errors.Join(err, state.checkOthers(c.config.Host))
	}
	if o.ControllerSwitch == "" {
		return fmt.Errorf("existing cluster: %s already active on %s, but the subject must be the only instance of the controllers under test; turn them off, or set --controller-switch to a program that turns them off and on",
			strings.Join(state.active, ", "), c.config.Host)
	}
	if c.controllerSwitch, err = newControllerSwitch(o); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, turnOffTimeout, fmt.Errorf("the controllers of the cluster were not inactive within %s", turnOffTimeout))
	defer cancel()
	if err := c.controllerSwitch.run(ctx, argumentOff); err != nil {
		return err
	}
	err = cluster.Poll(ctx, pollInterval, "the cluster's own controllers to be inactive", func(ctx context.Context) error {
		state, err = readControllers(ctx, client, o.Controllers)
		if err == nil && len(state.active) > 0 {
			err = fmt.Errorf("`%s %s` succeeded, but these controllers are still active: %s", o.ControllerSwitch, argumentOff, strings.Join(state.active, ", "))
		}
		return err
	})
	return errors.Join(err, state.checkOthers(c.config.Host))
}

// controllerState says which of the cluster's own controllers are active.
type controllerState struct {
	active        []string // controllers under test that are active
	missingOthers []string // default controllers that are neither active nor under test
}

// readControllers finds out which of the cluster's own controllers are active. It probes the
// controllers under test and all default controllers.
func readControllers(ctx context.Context, client dynamic.Interface, underTest []kube.Controller) (controllerState, error) {
	underTest = kube.OrDefault(underTest)
	names := kube.NamesOf(underTest)
	others := slices.DeleteFunc(kube.OrDefault(nil), func(c kube.Controller) bool { return slices.Contains(names, c.Name) })
	probes, err := probesFor(slices.Concat(underTest, others))
	if err != nil {
		return controllerState{}, err
	}
	active, err := activeControllers(ctx, client, probes)
	var state controllerState
	for _, name := range active {
		if slices.Contains(names, name) {
			state.active = append(state.active, name)
		}
	}
	for _, name := range kube.NamesOf(others) {
		if !slices.Contains(active, name) {
			state.missingOthers = append(state.missingOthers, name)
		}
	}
	return state, err
}

// checkOthers returns an error if a default controller that is not under test is inactive.
//
// The run needs these controllers, but some clusters do not run them, such as a standing
// cluster of gauntlet.
func (s controllerState) checkOthers(host string) error {
	if len(s.missingOthers) == 0 {
		return nil
	}
	return fmt.Errorf("existing cluster: %s not active on %s, but the run needs all default controllers that are not under test; turn them on, or test all default controllers",
		strings.Join(s.missingOthers, ", "), host)
}

// newControllerSwitch prepares to turn the cluster's own controllers off and on with the
// program in o.ControllerSwitch. If gauntlet dies after this call, the guard process turns them
// on again.
func newControllerSwitch(o Options) (*controllerSwitch, error) {
	program, err := exec.LookPath(o.ControllerSwitch)
	if err == nil {
		program, err = filepath.Abs(program)
	}
	if err != nil {
		return nil, fmt.Errorf("existing cluster: --controller-switch: expected the path or name of a program: %w", err)
	}
	s := &controllerSwitch{program: program, env: append(os.Environ(),
		"CONTEXT="+o.Context,
		"CONTROLLERS="+strings.Join(kube.NamesOf(kube.OrDefault(o.Controllers)), ","),
	)}
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

// turnOn turns the controllers on again. Only the first call runs the program; later calls return
// the same error.
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

// run runs the program with the given argument. If the program fails, the error contains its
// output.
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
