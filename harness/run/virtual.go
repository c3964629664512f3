package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/environment"
	"github.com/kube-gauntlet/gauntlet/harness/internal/cluster/virtual"
	"github.com/kube-gauntlet/gauntlet/harness/internal/process"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

// virtualTimeout is the maximum duration of a run in virtual time, measured in real time. Such a
// run usually takes a second or two. It takes forever if a goroutine waits for something outside
// of the virtual clock.
const virtualTimeout = 10 * time.Minute

// virtualStopGrace is the time between SIGTERM and SIGKILL for the program that runs in virtual
// time.
const virtualStopGrace = time.Second

// inVirtualTime reports whether the program gauntlet-virtual must record the run. In that
// program, time jumps to the next timer whenever all goroutines wait.
func (o *Options) inVirtualTime() bool {
	provider, err := providers.Named(o.Provider)
	return err == nil && o.On == nil && provider.Capabilities.Has(cluster.VirtualTime)
}

// preflightVirtual returns an error if a run in virtual time cannot support the options, such as
// KeepUp. It also returns an error if the program gauntlet-virtual is missing.
func (o *Options) preflightVirtual() error {
	if o.Scenario.ExternalWorkload != nil || o.KeepUp != nil || o.OnRecord != nil || o.Direct {
		return fmt.Errorf("provider %s: found an external workload, --keep, --verbose, or another use of Options.KeepUp, OnRecord or Direct; expected none of these, or another provider, because %s records the run", o.Provider, virtual.Program)
	}
	_, err := virtual.Find(o.Gauntlet)
	return err
}

// recordInVirtualTime starts the program gauntlet-virtual, which records the history of the run,
// and waits until it has exited. The program calls [Record].
func (s *Session) recordInVirtualTime(ctx context.Context) error {
	program, err := virtual.Find(s.Gauntlet)
	if err != nil {
		return err
	}
	s.progress("running in virtual time")
	p, err := process.Start(ctx, process.Spec{
		Name: virtual.Program, Path: program, Args: []string{string(s.dir)},
		Env:     []string{"HOME=" + os.Getenv("HOME"), "PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir()},
		LogPath: filepath.Join(s.dir.logs(), virtual.Program+".log"),
	})
	if err != nil {
		return err
	}
	timer := time.NewTimer(virtualTimeout)
	defer timer.Stop()
	select {
	case <-p.Done():
	case <-ctx.Done():
		return errors.Join(errInterrupted, p.Stop(context.WithoutCancel(ctx), virtualStopGrace))
	case <-timer.C:
		return errors.Join(fmt.Errorf("%s did not exit within %s; see %s", virtual.Program, virtualTimeout, filepath.Join(s.dir.logs(), virtual.Program+".log")), p.Kill())
	}
	var exit *process.ExitError
	if errors.As(p.Err(), &exit) && exit.Code == 0 {
		return nil
	}
	return p.Err()
}

// Record records the history of a run in a directory that another gauntlet process has created.
// The program gauntlet-virtual calls Record for runs in virtual time. The first process then
// checks the history.
//
// Record calls start to start the control plane, and does not stop it. Messages of the run are
// passed to progress.
func Record(ctx context.Context, path string, start func(seed uint64, o providers.Options) (cluster.Cluster, error), progress func(message string)) error {
	dir, spec, created, err := openRunDirectory(path)
	if err != nil {
		return err
	}
	target, err := subject.ParseTarget(created.Subject)
	if err != nil {
		return err
	}
	o := &Options{Scenario: spec, Target: target, Provider: created.Provider, Clock: clock.RealClock{}, Progress: progress}
	c, err := start(spec.Seed, o.controlPlane())
	if err != nil {
		return fmt.Errorf("starting the control plane: %w", err)
	}
	o.On, err = environment.On(c, environment.Options{
		Provider: o.Provider, ControlPlane: o.controlPlane(), StateDir: dir.state(), KeepState: true, LogDir: dir.logs(),
		Seed: spec.Seed, Clock: o.Clock, Progress: progress,
	})
	if err != nil {
		return err
	}
	s := &Session{Options: o, dir: dir, monitor: newMonitor(spec.Controllers()...)}
	if err = s.setUp(ctx); err == nil {
		err = s.runPhases(ctx)
	}
	if pending := s.monitor.settled.Pending(); len(pending) > 0 {
		s.progress("not converged: %s", pending[0])
	}
	return errors.Join(err, s.tearDown(ctx, err))
}
