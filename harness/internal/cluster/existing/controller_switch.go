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

// The arguments with which gauntlet runs the program of the flag --controller-switch. "off" turns
// off the cluster's own controllers before a run. "on" turns on the same controllers after the run.
const (
	argumentOff = "off"
	argumentOn  = "on"
)

// turnOffTimeout limits how long turnOffControllers waits for the cluster's own controllers to
// become inactive. The time includes the run of the program of --controller-switch.
const turnOffTimeout = 90 * time.Second

// controllerSwitch turns the cluster's own controllers off and on. It runs the program of the flag
// --controller-switch.
type controllerSwitch struct {
	program   string    // absolute path of the program in the flag --controller-switch
	env       []string  // environment variables of the program
	unguard   func()    // tells the guard process that it need no longer turn on the controllers if gauntlet dies
	turnedOn  sync.Once // runs the program with argumentOn only once
	turnOnErr error     // error of the program when it ran with argumentOn
}

// turnOffControllers ensures that the cluster itself runs none of the controllers under test.
//
// If such a controller is active, turnOffControllers runs the program in o.ControllerSwitch.
// Without such a program, it returns an error. An inactive default controller that is not under
// test is an error too, because the run needs that controller.
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
		return fmt.Errorf("existing cluster: %s already active on %s, but the subject must be the only instance of the controllers under test; turn off these controllers of the cluster, or set --controller-switch to a program that turns the controllers off and on",
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

// controllerState lists the controllers of the cluster itself that prevent a run. Some are
// active but must be off, others are off but must be active.
type controllerState struct {
	active        []string // controllers under test that are active, but must be off
	missingOthers []string // default controllers that are not under test and not active, but must be active
}

// readControllers returns those of the cluster's own controllers that prevent a run. To find out
// which controllers are active, it probes the controllers under test and all default controllers
// (see [probe]).
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

// checkOthers returns an error that names the default controllers in missingOthers, and nil if
// there are none.
//
// A run needs all default controllers. Some clusters do not run these controllers, such as a
// cluster of `gauntlet up`.
func (s controllerState) checkOthers(host string) error {
	if len(s.missingOthers) == 0 {
		return nil
	}
	return fmt.Errorf("existing cluster: %s not active on %s, but the run needs all default controllers that are not under test; turn on these controllers, or test all default controllers",
		strings.Join(s.missingOthers, ", "), host)
}

// newControllerSwitch returns a controllerSwitch with the program in o.ControllerSwitch, but does
// not run the program. If gauntlet dies later, the guard process runs the program with "on".
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

// turnOn turns the cluster's own controllers on again. Only the first call runs the program; later
// calls return the same error.
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

// run runs the program of --controller-switch with "on" or "off". If the program fails, the error
// contains the program's output.
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
