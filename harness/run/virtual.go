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

// virtualTimeout is the maximum duration of a run in virtual time, in real time. Such a run usually
// takes a second or two. It takes forever if a goroutine waits for something outside of the virtual clock.
const virtualTimeout = 10 * time.Minute

// virtualStopGrace is the time between SIGTERM and SIGKILL for the program that runs in virtual
// time.
const virtualStopGrace = time.Second

// inVirtualTime reports whether another program records the run in virtual time.
func (o *Options) inVirtualTime() bool {
	provider, err := providers.Named(o.Provider)
	return err == nil && o.On == nil && provider.Capabilities.Has(cluster.VirtualTime)
}

// preflightVirtual returns an error if the options have no effect in virtual time.
func (o *Options) preflightVirtual() error {
	if o.Scenario.ExternalWorkload != nil || o.KeepUp != nil || o.OnRecord != nil || o.Direct {
		return fmt.Errorf("found provider %s; expected another one, because its runs are recorded by another program: they have no external workload, keep no cluster and print no records", o.Provider)
	}
	_, err := virtual.Find(o.Gauntlet)
	return err
}

// recordInVirtualTime starts the program that records the history of the run, and waits until it
// has exited. The program calls [Record].
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
		return errors.Join(fmt.Errorf("%s did not exit within %s", virtual.Program, virtualTimeout), p.Kill())
	}
	var exit *process.ExitError
	if errors.As(p.Err(), &exit) && exit.Code == 0 {
		return nil
	}
	return p.Err()
}

// Record records the history of a run whose directory another program has created. It calls start
// to start the control plane, and does not stop it. The other program checks the history.
//
// Messages of the run are passed to progress.
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
